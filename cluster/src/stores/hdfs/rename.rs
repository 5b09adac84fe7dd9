//! Renaming on HDFS, where an answer may be lost.

use hdfs_native::Client;

use super::calls::Calls;
use crate::stores::error::Error;

/// Renames a file or directory. With `overwrite` the name node puts a file in the place of another one in one step.
///
/// # Errors
/// Those of the store. If no answer comes, the name node may have done it all the same: it has if `to` is there and `from` is
/// not, since no other process renames the files of this one.
pub(super) fn rename(calls: &Calls, from: &str, to: &str, overwrite: bool) -> Result<(), Error> {
    let rename = |client: Client, from: String| {
        let to = to.to_owned();
        async move { client.rename(&from, &to, overwrite).await }
    };
    let look = |path: &str| {
        calls.ask(path, "look for", |client: Client, path: String| async move {
            client.get_file_info(&path).await
        })
    };
    match calls.tell(from, rename) {
        Err(failure)
            if failure.is_silence()
                && matches!(look(from), Err(Error::NotFound { .. }))
                && look(to).is_ok() =>
        {
            Ok(())
        }
        answer => answer.map_err(|failure| failure.error(&calls.name(from), "rename")),
    }
}
