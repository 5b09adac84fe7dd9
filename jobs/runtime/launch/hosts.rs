//! The hosts file of a job: one line for each process, with its host, port and workers.

use std::net::Ipv6Addr;

use anyhow::{Result, bail};

use crate::cli::exit::WrongUse;

/// Port of a process for which none is named.
pub const PORT: u16 = 7117;

/// Processes of a hosts file.
#[derive(Debug, PartialEq)]
pub struct Hosts {
    /// `host:port` of each process.
    pub addresses: Vec<String>,
    /// Number of workers of each process, if the file says it.
    pub workers: Option<usize>,
}

impl Hosts {
    /// Reads lines of `host[:port] [workers]`; `#` begins a comment. `name`: the file, for errors.
    ///
    /// Processes on one host get consecutive ports from 7117 on, unless the file names ports.
    ///
    /// ```text
    /// a 4          a:7117, 4 workers
    /// a 4          a:7118, 4 workers
    /// b:9000 4     b:9000, 4 workers
    /// ```
    ///
    /// # Errors
    /// [`WrongUse`] for a line that is none of these, an address that stands twice, or processes with unequal
    /// workers.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
        // Number of the line, address and workers of each process.
        let mut of_lines: Vec<(usize, String, Option<usize>)> = Vec::new();
        for (at, line) in lines {
            let wrong = |what: &str| WrongUse(format!("\"{name}\", line {}: {what}", at + 1));
            let mut words = line.split_whitespace();
            let (host, port) = words.next().and_then(host_and_port).ok_or_else(|| {
                wrong("expected host, host:port, [IPv6] or [IPv6]:port, and perhaps the number of workers")
            })?;
            let workers = match words.next().map(str::parse) {
                None => None,
                Some(Ok(workers @ 1..=1024)) => Some(workers),
                Some(_) => bail!(wrong("expected the number of workers, from 1 to 1024, after the host")),
            };
            if words.next().is_some() {
                bail!(wrong("expected nothing after the number of workers"));
            }
            let earlier = of_lines.iter().filter(|(_, address, _)| before_port(address) == host).count();
            let Some(port) = port.or(u16::try_from(usize::from(PORT) + earlier).ok()) else {
                bail!(wrong("there are too many of this host"))
            };
            let address = format!("{host}:{port}");
            if let Some((other, ..)) = of_lines.iter().find(|(_, other, _)| *other == address) {
                bail!(wrong(&format!("{address} is that of line {other} too")));
            }
            of_lines.push((at + 1, address, workers));
        }
        let Some((first, _, workers)) = of_lines.first() else {
            bail!(WrongUse(format!("\"{name}\" names no host")))
        };
        if let Some((other, ..)) = of_lines.iter().find(|line| line.2 != *workers) {
            bail!(WrongUse(format!(
                "\"{name}\", lines {first} and {other}: every process has the same number of workers; list a stronger \
                 host twice"
            )));
        }
        Ok(Hosts {
            workers: *workers,
            addresses: of_lines.into_iter().map(|(_, address, _)| address).collect(),
        })
    }
}

/// Returns the host of an address, with the brackets of IPv6.
fn before_port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// Returns the host of an address as other programs want it, without the brackets of IPv6.
pub(crate) fn host_of(address: &str) -> &str {
    let host = before_port(address);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Splits `host[:port]`, where an IPv6 address is in brackets. `None` if it cannot be read.
fn host_and_port(word: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match word.find(']') {
        Some(end) => {
            let host = word.get(..=end)?;
            host.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?;
            (host, word.get(end + 1..)?)
        }
        None => {
            let host = word.split(':').next()?;
            // A host that begins with a dash would be an option of the launcher.
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
                return None;
            }
            (host, word.get(host.len()..)?)
        }
    };
    match port.strip_prefix(':') {
        None => port.is_empty().then_some((host, None)),
        Some(port) => Some((host, Some(port.parse().ok().filter(|&port| port > 0)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_file_has_ports_workers_and_comments() {
        let text = "# two racks\n\nhosta 4\nhosta:9000 4 # ours\n[fe80::1] 4\nhosta 4\n10.0.0.7:7117\t4\n";
        let hosts = Hosts::parse("h", text).unwrap();
        assert_eq!(
            hosts.addresses,
            ["hosta:7117", "hosta:9000", "[fe80::1]:7117", "hosta:7119", "10.0.0.7:7117"]
        );
        assert_eq!(hosts.workers, Some(4));
        assert_eq!(
            hosts.addresses.iter().map(|a| host_of(a)).collect::<Vec<_>>()[1..3],
            ["hosta", "fe80::1"]
        );
        assert_eq!(Hosts::parse("h", "a\na\n").unwrap().workers, None);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, words) in [
            ("a\n::1\n", "line 2: expected host"),
            ("[::1\n", "line 1: expected host"),
            ("[nonsense]\n", "line 1: expected host"),
            ("[::1]x\n", "line 1: expected host"),
            ("-oProxyCommand=x\n", "line 1: expected host"),
            ("a;b\n", "line 1: expected host"),
            ("a:0\n", "line 1: expected host"),
            ("a:65536\n", "line 1: expected host"),
            ("a four\n", "line 1: expected the number of workers"),
            ("a 0\n", "line 1: expected the number of workers"),
            ("a 4 4\n", "line 1: expected nothing after"),
            ("a:7118\na\n", "line 2: a:7118 is that of line 1 too"),
            ("#\na 4\nb 2\n", "lines 2 and 3: every process has the same number of workers; list a stronger"),
            ("a 4\nb\n", "lines 1 and 2: every process"),
            ("# none\n", "\"h\" names no host"),
        ] {
            let error = Hosts::parse("h", text).unwrap_err();
            assert!(
                matches!(error.downcast_ref(), Some(WrongUse(_))) && error.to_string().contains(words),
                "{text:?}: {error}"
            );
        }
    }
}
