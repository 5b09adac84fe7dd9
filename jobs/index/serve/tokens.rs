//! Tokens, which say who may ask and change what, and how fast.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cluster::path_of_text;
use parking_lot::Mutex;
use serde::Deserialize;

use super::bodies::RequestRoom;
use runtime::Common;
use runtime::cli::values::text_of_file;

/// Least number of characters of a token.
const LEAST_LENGTH: usize = 16;

/// A line of the file of tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenLine {
    name: String,
    token: String,
    topics: Option<Vec<String>>,
    #[serde(default)]
    write: bool,
    documents_per_second: Option<f64>,
}

/// A token, of which only the hash is kept.
pub(super) struct ClientToken {
    pub name: String,
    hash: blake3::Hash,
    topics: Option<Vec<String>>,
    writes: bool,
    rate: Option<Mutex<RateLimit>>,
    /// Share of the room of the server; `None` if there is no other token.
    pub share: Option<RequestRoom>,
}

/// A bucket that fills with documents, up to those of one second.
struct RateLimit {
    per_second: f64,
    left: f64,
    filled: Instant,
}

impl RateLimit {
    /// Takes documents, or returns the seconds after which there are enough. More than a second has at once are taken from
    /// a full bucket, and the next ones wait for that much longer.
    fn take(&mut self, documents: usize) -> Result<(), u64> {
        let now = Instant::now();
        let more = now.duration_since(self.filled).as_secs_f64() * self.per_second;
        (self.left, self.filled) = ((self.left + more).min(self.per_second), now);
        let wanted = documents as f64;
        if self.left < wanted.min(self.per_second) {
            let seconds = (wanted.min(self.per_second) - self.left) / self.per_second;
            return Err(seconds.ceil() as u64);
        }
        self.left -= wanted;
        Ok(())
    }
}

impl ClientToken {
    /// Whether requests about a topic are allowed.
    pub fn allows(&self, topic: &str) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.iter().any(|allowed| allowed == topic))
    }

    /// Whether changes are allowed.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Counts documents against the rate of the token, or returns the seconds to wait.
    pub fn take(&self, documents: usize) -> Result<(), u64> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.lock().take(documents))
    }
}

/// The tokens of a server.
pub(super) struct Tokens(Vec<Arc<ClientToken>>);

impl Tokens {
    /// Reads a file of tokens. `share`: makes the room of one of several tokens.
    ///
    /// # Errors
    /// For each line that is wrong, without its contents, which are secret.
    pub fn read(path: &str, share: impl Fn() -> RequestRoom, common: &Common) -> Result<Self> {
        let mode = fs::metadata(path_of_text(path)).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            common.warn(format_args!("other users can read the tokens \"{path}\": chmod 600 keeps them out"));
        }
        let mut tokens: Vec<ClientToken> = Vec::new();
        for (number, line) in (1..).zip(text_of_file(path)?.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = || format!("line {number} of the tokens \"{path}\" is wrong");
            let TokenLine { name, token, topics, write, documents_per_second } =
                serde_json::from_str(line).ok().with_context(wrong)?;
            if token.chars().count() < LEAST_LENGTH {
                bail!("{}: a token has at least {LEAST_LENGTH} characters", wrong());
            }
            let rate = match documents_per_second {
                Some(per_second) if per_second > 0.0 => {
                    let limit = RateLimit { per_second, left: per_second, filled: Instant::now() };
                    Some(Mutex::new(limit))
                }
                Some(_) => bail!("{}: documents_per_second must be greater than 0", wrong()),
                None => None,
            };
            let hash = blake3::hash(token.as_bytes());
            if tokens.iter().any(|other| other.hash == hash) {
                bail!("{}: an earlier line has this token", wrong());
            }
            tokens.push(ClientToken { name, hash, topics, writes: write, rate, share: None });
        }
        if tokens.is_empty() {
            bail!("the file of tokens \"{path}\" has none");
        }
        if tokens.len() > 1 {
            tokens.iter_mut().for_each(|token| token.share = Some(share()));
        }
        Ok(Tokens(tokens.into_iter().map(Arc::new).collect()))
    }

    /// Finds a token. The time tells nothing of it: hashes are compared in constant time, with all tokens.
    pub fn find(&self, token: &str) -> Option<&Arc<ClientToken>> {
        let hash = blake3::hash(token.as_bytes());
        self.0.iter().fold(None, |found, token| if token.hash == hash { Some(token) } else { found })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_holds_over_many_requests() {
        let mut limit = RateLimit { per_second: 100.0, left: 100.0, filled: Instant::now() };
        assert_eq!(limit.take(100), Ok(()));
        assert_eq!(limit.take(50), Err(1));
        limit.filled -= Duration::from_millis(600);
        assert_eq!(limit.take(50), Ok(()));
        limit.filled -= Duration::from_secs(60);
        assert_eq!(limit.take(1000), Ok(()), "a batch may be larger than a second allows");
        limit.filled -= Duration::from_secs(5);
        assert_eq!(limit.take(1), Err(5));
    }
}
