//! Tests of the files of `scripts/` that start a job's processes with a scheduler.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::corpus::json_lines;
use crate::support::{Folder, Run, run};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// Runs the batch file with an `srun` of the test, which runs its command `tasks` times, one after the other,
/// as the tasks of a step.
fn sbatch(here: &Folder, tasks: usize, arguments: &str) -> Run {
    let srun = format!(
        "#!/usr/bin/env bash
         echo >> attempts
         stat -c %a .dedup-token.* >> modes
         while [[ $1 == -* ]]; do shift; done
         code=0
         for (( task = 0; task < {tasks}; task++ )); do
             SLURM_PROCID=$task SLURM_STEP_NUM_TASKS={tasks} SLURM_STEP_NODELIST=localhost \\
             SLURM_STEP_TASKS_PER_NODE={tasks} SLURM_NODEID=0 SLURM_CPUS_PER_TASK=3 \"$@\"
             last=$?
             (( last > code )) && code=$last
         done
         exit $code
        "
    );
    here.write("bin/srun", srun);
    fs::set_permissions(here.path("bin/srun"), fs::Permissions::from_mode(0o755)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_dedup-job")).parent().unwrap();
    let folders = [here.path("bin"), program.to_owned()].map(|folder| folder.display().to_string()).join(":");
    let mut command = Command::new("bash");
    command
        .arg(script("slurm/dedup.sbatch"))
        .args(arguments.split_whitespace())
        .current_dir(here.path(""))
        .env("PATH", format!("{folders}:{}", std::env::var("PATH").unwrap()))
        .env("DEDUP_RETRIES", "1");
    run(&mut command)
}

#[test]
fn the_batch_file_of_slurm_runs_the_job() {
    let here = Folder::new();
    here.write("a.jsonl", json_lines([("a", "今天"), ("b", "今天")]));
    let done = sbatch(&here, 1, "--method exact a.jsonl out").ends(0);
    assert!(done.stderr.contains("Kept=1"), "{done:?}");
    assert_eq!(here.success("out")["configuration"]["workers"], "3");
    assert_eq!(here.lines("attempts", "").len(), 1);
    assert_eq!(here.lines("modes", ""), ["600"]);
    let left = here.files("").into_iter().filter(|file| file.display().to_string().contains("token"));
    assert_eq!(left.count(), 0);

    // The exit code is kept, and wrong use is not tried again.
    sbatch(&here, 1, "none.jsonl new").ends(2);
    assert_eq!(here.lines("attempts", "").len(), 2);
}

#[test]
fn the_manifest_of_kubernetes_agrees_with_itself_and_the_program() {
    let text = fs::read_to_string(script("kubernetes/statefulset.yaml")).unwrap();
    assert!(!text.contains('\t'), "YAML knows no tabs");
    assert_eq!(text.lines().filter(|line| *line == "---").count(), 1);
    let values = |name: &str| -> Vec<&str> {
        text.lines()
            .filter_map(|line| {
                line.trim_start().trim_start_matches("- ").strip_prefix(name)?.strip_prefix(": ")
            })
            .map(|value| value.split(" #").next().unwrap_or_default().trim_matches('"'))
            .collect()
    };
    assert_eq!(values("kind"), ["Service", "StatefulSet"]);
    let of_env = |name: &str| {
        let (_, after) = text.split_once(&format!("- name: {name}\n")).unwrap();
        after
            .trim_start()
            .strip_prefix("value: ")
            .unwrap()
            .split([' ', '\n'])
            .next()
            .unwrap()
            .trim_matches('"')
    };
    assert_eq!(values("replicas"), [of_env("DEDUP_PROCESSES")]);
    assert_eq!(values("serviceName"), [of_env("DEDUP_SERVICE")]);
    assert_eq!(values("port"), ["7117"]);
    assert_eq!(values("containerPort"), ["7117"]);
    assert_eq!(values("clusterIP"), ["None"]);
    assert_eq!(values("podManagementPolicy"), ["Parallel"]);
    assert_eq!(values("defaultMode"), ["0400"]);
    assert!(values("name").contains(&"dedup") && values("app").iter().all(|&app| app == "dedup"));
}

#[test]
fn the_command_of_a_pod_restarts_what_may_succeed_and_nothing_else() {
    let text = fs::read_to_string(script("kubernetes/statefulset.yaml")).unwrap();
    let (_, body) = text.split_once("            - |\n").unwrap();
    let (body, _) = body.split_once("            - dedup-job\n").unwrap();
    for (code, waits) in [(0, true), (3, true), (2, true), (4, true), (11, true), (1, false), (137, false)] {
        let here = Folder::new();
        for (name, text) in [
            ("dedup-job", format!("#!/bin/sh\necho \"$@\" > arguments\nexit {code}\n")),
            ("sleep", "#!/bin/sh\necho $1 > slept\n".to_owned()),
        ] {
            here.write(name, text);
            fs::set_permissions(here.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", here.path("").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", body, "dedup-job", "--workers", "32", "dedup", "in", "out"]);
        let pod = run(command.current_dir(here.path("")).env("PATH", path));
        let arguments = "--master kubernetes --token-file /token/token --workers 32 dedup in out";
        assert_eq!(here.lines("arguments", ""), [arguments]);
        assert_eq!(here.path("slept").exists(), waits, "{code}: {pod:?}");
        assert_eq!(pod.code, Some(if waits { 0 } else { code }));
    }
}
