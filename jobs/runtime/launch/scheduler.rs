//! Reads from environment variables what Slurm and Kubernetes tell a process of a job about itself and the
//! others.

use anyhow::{Result, bail};

use super::hosts::PORT;
use crate::cli::exit::{Failure, WrongUse};

/// Largest number of processes that a list may name.
const MOST: usize = 65_536;

/// Number of this process in its job, and the addresses of all.
#[derive(Debug, PartialEq)]
pub struct Scheduled {
    /// Number of this process, from 0.
    pub index: usize,
    /// `host:port` of each process.
    pub addresses: Vec<String>,
    /// Number of workers of each process, if the scheduler says it.
    pub workers: Option<usize>,
}

/// Reads the place of a task of a Slurm step, which `srun` has started.
///
/// Ports are those that Slurm has reserved for the step (`srun --resv-ports`); otherwise they depend on the
/// number of the job.
pub fn slurm(env: &impl Fn(&str) -> Option<String>) -> Result<Scheduled> {
    let needed = |name: &str| {
        env(name)
            .ok_or_else(|| WrongUse(format!("--master slurm: {name} is not set; start dedup-job with srun")))
    };
    let number = |name: &str| number(name, &needed(name)?);
    let count = number("SLURM_STEP_NUM_TASKS")?;
    let index = number("SLURM_PROCID")?;
    let list = needed("SLURM_STEP_NODELIST")?;
    let nodes = nodes(&list).ok_or_else(|| unreadable("SLURM_STEP_NODELIST", &list))?;
    let list = needed("SLURM_STEP_TASKS_PER_NODE")?;
    let tasks = tasks_per_node(&list).ok_or_else(|| unreadable("SLURM_STEP_TASKS_PER_NODE", &list))?;
    if nodes.len() != tasks.len() || tasks.iter().sum::<usize>() != count || index >= count {
        bail!(WrongUse(format!(
            "--master slurm: SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE \
             contradict each other: {index}, {count}, {} nodes and {list}",
            nodes.len()
        )));
    }
    let on_one = tasks.iter().copied().max().unwrap_or_default();
    let first_port = match env("SLURM_STEP_RESV_PORTS") {
        Some(ports) => {
            let range = ports.split_once('-').unwrap_or((&ports, &ports));
            match (range.0.parse::<usize>(), range.1.parse::<usize>()) {
                (Ok(first), Ok(last)) if first + on_one <= last + 1 && last <= 65_535 => first,
                (Ok(_), Ok(_)) => bail!(WrongUse(format!(
                    "--master slurm: {on_one} tasks on a node, but SLURM_STEP_RESV_PORTS is {ports}; ask for \
                     --resv-ports={on_one}"
                ))),
                _ => bail!(unreadable("SLURM_STEP_RESV_PORTS", &ports)),
            }
        }
        // Jobs that share a node get different ports, below those that systems use for outgoing connections.
        None => usize::from(PORT) + number("SLURM_JOB_ID").unwrap_or_default() % 100 * 256,
    };
    let places = nodes.iter().zip(&tasks).enumerate();
    let places: Vec<(usize, String)> = places
        .flat_map(|(at, (node, &tasks))| (0..tasks).map(move |i| (at, format!("{node}:{}", first_port + i))))
        .collect();
    if env("SLURM_NODEID").is_some_and(|node| node != places[index].0.to_string()) {
        bail!(WrongUse("--master slurm: start dedup-job with srun --distribution=block".to_owned()));
    }
    let addresses = places.into_iter().map(|(_, address)| address).collect();
    let workers = env("SLURM_CPUS_PER_TASK").map(|cpus| self::number("SLURM_CPUS_PER_TASK", &cpus));
    Ok(Scheduled { index, addresses, workers: workers.transpose()? })
}

/// Reads the place of a pod of a Kubernetes StatefulSet (or of an indexed Job), whose host name ends in its
/// number.
pub fn kubernetes(env: &impl Fn(&str) -> Option<String>) -> Result<Scheduled> {
    let needed = |name: &str| {
        env(name).ok_or_else(|| {
            WrongUse(format!(
                "--master kubernetes: {name} is not set; see scripts/kubernetes/statefulset.yaml"
            ))
        })
    };
    let count = number("DEDUP_PROCESSES", &needed("DEDUP_PROCESSES")?)?;
    let service = needed("DEDUP_SERVICE")?;
    let host = needed("HOSTNAME")?;
    let pod = host.rsplit_once('-').and_then(|(name, index)| Some((name, index.parse().ok()?)));
    let Some((name, index)) = pod else {
        bail!(WrongUse(format!("--master kubernetes: \"{host}\" is no pod of a StatefulSet")))
    };
    if index >= count || count > MOST {
        bail!(WrongUse(format!("--master kubernetes: \"{host}\" is none of DEDUP_PROCESSES={count} pods")));
    }
    let addresses = (0..count).map(|i| format!("{name}-{i}.{service}:{PORT}")).collect();
    Ok(Scheduled { index, addresses, workers: None })
}

fn unreadable(name: &str, value: &str) -> Failure {
    WrongUse(format!("could not read {name}=\"{value}\""))
}

fn number(name: &str, value: &str) -> Result<usize> {
    Ok(value.parse().map_err(|_| unreadable(name, value))?)
}

/// Returns the nodes of a list such as `n[01-03,7],m4-[1-2]`.
fn nodes(list: &str) -> Option<Vec<String>> {
    let mut depth = 0;
    let items = list.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    let mut nodes = Vec::new();
    for item in items {
        nodes.extend(expanded(item)?);
        if item.is_empty() || nodes.len() > MOST {
            return None;
        }
    }
    Some(nodes)
}

/// Expands the brackets of one item: `a[01-02]b[3,5]` gives `a01b3`, `a01b5`, `a02b3`, `a02b5`.
fn expanded(item: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = item.split_once('[') else {
        return (!item.contains(']')).then(|| vec![item.to_owned()]);
    };
    let (ranges, after) = rest.split_once(']')?;
    let after = expanded(after)?;
    let mut nodes = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if from > to || to - from >= MOST || after.len() * (to - from) > MOST {
            return None;
        }
        for at in from..=to {
            nodes.extend(
                after.iter().map(|after| format!("{before}{at:0width$}{after}", width = first.len())),
            );
        }
    }
    Some(nodes)
}

/// Returns the number of tasks of each node: `2(x3),1` gives 2, 2, 2, 1.
fn tasks_per_node(list: &str) -> Option<Vec<usize>> {
    let mut tasks = Vec::new();
    for item in list.split(',') {
        let (count, nodes) = match item.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (item, 1),
        };
        let count = count.parse::<usize>().ok()?;
        if tasks.len() + nodes > MOST || count > MOST {
            return None;
        }
        tasks.extend(std::iter::repeat_n(count, nodes));
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an environment of `NAME=value`, separated by spaces.
    fn env(text: &str) -> impl Fn(&str) -> Option<String> {
        move |name| {
            text.split_whitespace()
                .find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='))
                .map(str::to_owned)
        }
    }

    const STEP: &str = "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NODELIST=n[09-10],m \
                        SLURM_STEP_TASKS_PER_NODE=2(x2),1 SLURM_JOB_ID=1002";

    #[test]
    fn a_list_of_nodes_is_written_out() {
        let names = |list| nodes(list).map(|nodes| nodes.join(" ")).unwrap_or_default();
        assert_eq!(names("n[01-03,7],m4-[1-2]"), "n01 n02 n03 n7 m4-1 m4-2");
        assert_eq!(names("a[08-11]b[3,5-6].x"), {
            let of = |a: &str| ["3", "5", "6"].map(|b| format!("a{a}b{b}.x")).join(" ");
            ["08", "09", "10", "11"].map(of).join(" ")
        });
        assert_eq!(names("one"), "one");
        for wrong in ["n[1-", "n1]", "n[2-1]", "n[a]", "n[1-999999]", "a,,b", "", "a[1-60000]b[1-60000]"] {
            assert_eq!(nodes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tasks_per_node_are_written_out() {
        assert_eq!(tasks_per_node("2(x3),1").unwrap(), [2, 2, 2, 1]);
        for wrong in ["", "2(x3", "x", "2(x999999999)"] {
            assert_eq!(tasks_per_node(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_task_of_slurm_knows_itself_and_the_others() {
        let task = slurm(&env(STEP)).unwrap();
        assert_eq!(task.index, 3);
        assert_eq!(task.workers, None);
        // The first port of job 1002 is 7117 + 2 * 256.
        assert_eq!(task.addresses, ["n09:7629", "n09:7630", "n10:7629", "n10:7630", "m:7629"]);
        let reserved = slurm(&env(&format!(
            "{STEP} SLURM_STEP_RESV_PORTS=12000-12001 SLURM_CPUS_PER_TASK=8 SLURM_NODEID=1"
        )));
        let reserved = reserved.unwrap();
        assert_eq!((reserved.workers, reserved.addresses[3].as_str()), (Some(8), "n10:12001"));
    }

    #[test]
    fn what_slurm_says_must_agree() {
        for (more, words) in [
            ("SLURM_STEP_NUM_TASKS=6", "contradict"),
            ("SLURM_PROCID=5", "contradict"),
            ("SLURM_STEP_NODELIST=n[1-2]", "contradict"),
            ("SLURM_STEP_NODELIST=n[1-", "could not read SLURM_STEP_NODELIST"),
            ("SLURM_STEP_TASKS_PER_NODE=two", "could not read SLURM_STEP_TASKS_PER_NODE"),
            ("SLURM_STEP_RESV_PORTS=12000", "--resv-ports=2"),
            ("SLURM_STEP_RESV_PORTS=x", "could not read SLURM_STEP_RESV_PORTS"),
            ("SLURM_NODEID=2", "--distribution=block"),
        ] {
            // The first of two values counts.
            let error = slurm(&env(&format!("{more} {STEP}"))).unwrap_err();
            assert!(
                matches!(error.downcast_ref(), Some(WrongUse(_))) && error.to_string().contains(words),
                "{more}: {error}"
            );
        }
        let error = slurm(&env("SLURM_PROCID=0")).unwrap_err().to_string();
        assert!(error.contains("SLURM_STEP_NUM_TASKS is not set; start dedup-job with srun"), "{error}");
    }

    #[test]
    fn a_pod_knows_itself_and_the_others() {
        let pod = kubernetes(&env("HOSTNAME=my-dedup-1 DEDUP_PROCESSES=2 DEDUP_SERVICE=my-dedup")).unwrap();
        let addresses = ["my-dedup-0.my-dedup:7117", "my-dedup-1.my-dedup:7117"].map(str::to_owned);
        assert_eq!(pod, Scheduled { index: 1, addresses: addresses.to_vec(), workers: None });
        for (wrong, words) in [
            ("HOSTNAME=d-2 DEDUP_PROCESSES=2 DEDUP_SERVICE=d", "none of DEDUP_PROCESSES=2"),
            ("HOSTNAME=laptop DEDUP_PROCESSES=2 DEDUP_SERVICE=d", "no pod"),
            ("HOSTNAME=d-1 DEDUP_PROCESSES=2", "DEDUP_SERVICE is not set"),
            ("HOSTNAME=d-1 DEDUP_PROCESSES=two DEDUP_SERVICE=d", "could not read DEDUP_PROCESSES"),
        ] {
            let error = kubernetes(&env(wrong)).unwrap_err();
            assert!(
                matches!(error.downcast_ref(), Some(WrongUse(_))) && error.to_string().contains(words),
                "{wrong}: {error}"
            );
        }
    }
}
