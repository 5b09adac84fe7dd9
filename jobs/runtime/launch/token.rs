//! The token: the secret that the processes of a job share, and the file in which a user keeps it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use anyhow::{Result, bail};
use cluster::path_of_text;

use crate::cli::exit::WrongUse;

/// Length of the shortest token, in bytes. At this length a random token holds 128 bits or more: a
/// hexadecimal digit has 4.
const LEAST_TOKEN_BYTES: usize = 32;
/// Number of bytes of a file that are read: the file may be a device without end.
const MOST_TOKEN_BYTES: u64 = 64 << 10;
/// Shell command that makes a token which no other user can read.
const MAKE_TOKEN: &str = "(umask 077; head -c 32 /dev/urandom | base64 > FILE)";

/// Secret that the processes of a job prove to each other to know.
#[derive(Clone, PartialEq)]
pub(crate) struct Token(pub Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Reads the token from a file that no other user may read. A pipe belongs to no other user.
    ///
    /// # Errors
    /// Wrong use: the file cannot be read, others may read it, or its content could be guessed.
    pub fn read(file: &str) -> Result<Token> {
        let mut bytes = Vec::new();
        let read = File::open(path_of_text(file)).and_then(|opened| {
            let metadata = opened.metadata()?;
            opened.take(MOST_TOKEN_BYTES).read_to_end(&mut bytes)?;
            Ok(metadata)
        });
        let metadata = read.map_err(|error| WrongUse(format!("could not read \"{file}\": {error}")))?;
        let mode = metadata.mode() & 0o777;
        if metadata.is_file() && !is_private(mode, metadata.uid()) {
            bail!(WrongUse(format!(
                "--token-file \"{file}\": other users may use it (mode {mode:o}): take their permission away with \
             chmod 600, and make a new token if one of them may have read it: {MAKE_TOKEN}"
            )));
        }
        let token = bytes.trim_ascii();
        if token.len() < LEAST_TOKEN_BYTES {
            bail!(WrongUse(format!(
                "--token-file \"{file}\": expected {LEAST_TOKEN_BYTES} characters or more, made at random: {MAKE_TOKEN}"
            )));
        }
        Ok(Token(token.to_owned()))
    }
}

/// Whether only its owner may use a file. If root owns the file, its group may read it too: Kubernetes gives
/// a secret to a pod with `fsGroup` so.
fn is_private(mode: u32, owner: u32) -> bool {
    let allowed = if owner == 0 { 0o740 } else { 0o700 };
    mode & !allowed == 0
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const TOKEN: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_token_is_taken_from_a_file_that_its_owner_alone_may_read() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("token").display().to_string();
        fs::write(&file, [b" ", TOKEN, b"\n"].concat()).unwrap();
        for (mode, taken) in
            [(0o600, true), (0o400, true), (0o604, false), (0o620, false), (0o644, false), (0o601, false)]
        {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let link = here.path().join(format!("link-{mode:o}"));
            symlink(&file, &link).unwrap();
            for file in [&file, &link.display().to_string()] {
                match Token::read(file) {
                    Ok(token) => assert!(taken && token.0 == TOKEN, "{mode:o}"),
                    Err(error) => {
                        let words = format!("\"{file}\": other users may use it (mode {mode:o}): ");
                        assert!(
                            !taken && matches!(error.downcast_ref(), Some(WrongUse(_))),
                            "{mode:o}: {error}"
                        );
                        assert!(error.to_string().contains(&words), "{mode:o}: {error}");
                    }
                }
            }
        }
        assert_eq!(format!("{:?}", Token(b"secret".to_vec())), "Token");
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("token").display().to_string();
        for (text, taken) in [
            (TOKEN, true),
            (&TOKEN[1..], false),
            (b"   0123456789abcdef0123456789abcde\n", false),
            (b"", false),
        ] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            let read = Token::read(&file);
            assert_eq!(read.is_ok(), taken, "{text:?}");
            let said = read.err().map_or_else(String::new, |error| error.to_string());
            assert!(
                taken
                    || said
                        .contains("expected 32 characters or more, made at random: (umask 077; head -c 32"),
                "{said}"
            );
        }
        // A device is no file that others could have read, and it has no end.
        assert!(Token::read("/dev/urandom").is_ok());
    }

    #[test]
    fn a_group_may_read_what_root_gives_it() {
        // Owner (0 is root), mode, and whether the token is taken.
        for (owner, mode, taken) in [
            (1000, 0o400, true),
            (1000, 0o440, false),
            (0, 0o400, true),
            (0, 0o440, true),
            (0, 0o444, false),
            (0, 0o660, false),
        ] {
            assert_eq!(is_private(mode, owner), taken, "{owner}, {mode:o}");
        }
    }
}
