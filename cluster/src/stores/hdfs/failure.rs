//! Failures of the HDFS client library: their cause, the error that callers see, and whether to retry.

use std::{fmt, io};

use hdfs_native::HdfsError;

use crate::stores::error::Error;
use crate::stores::remote::NoAnswer;

/// Reason why a call has no answer.
#[derive(Debug)]
pub(super) enum HdfsFailure {
    Library(HdfsError),
    /// The task of the call gave no answer. It is `Broken` too where a read was shorter than the file.
    Silent(NoAnswer),
}

impl From<NoAnswer> for HdfsFailure {
    fn from(silence: NoAnswer) -> Self {
        HdfsFailure::Silent(silence)
    }
}

impl fmt::Display for HdfsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The message shows the exception's name without its package, and its text without the stack.
            HdfsFailure::Library(
                HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message),
            ) => {
                write!(f, "{}: {}", short(class), first_line(message))
            }
            // The rest of the text is the library's debug output of each data node.
            HdfsFailure::Library(HdfsError::DataTransferError(text)) => {
                write!(f, "{}", first_line(text.split(": [").next().unwrap_or_default()))
            }
            HdfsFailure::Library(error) => write!(f, "{}", first_line(&error.to_string())),
            HdfsFailure::Silent(NoAnswer::Late(limit)) => write!(f, "no answer within {limit:?}"),
            HdfsFailure::Silent(NoAnswer::Broken) => write!(f, "the HDFS client broke off"),
        }
    }
}

impl HdfsFailure {
    /// Returns the error for callers that performed `action` on `name`.
    pub(super) fn error(&self, name: &str, action: &'static str) -> Error {
        let kind = match self {
            HdfsFailure::Library(HdfsError::FileNotFound(_)) => io::ErrorKind::NotFound,
            HdfsFailure::Library(HdfsError::IsADirectoryError(_)) => io::ErrorKind::IsADirectory,
            HdfsFailure::Library(HdfsError::AlreadyExists(_)) => io::ErrorKind::AlreadyExists,
            HdfsFailure::Library(
                HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message),
            ) => match short(class) {
                "FileNotFoundException" if message.starts_with("Path is not a file") => {
                    io::ErrorKind::IsADirectory
                }
                // The directory of the new name is missing; the old name may well exist.
                "FileNotFoundException" if message.starts_with("rename destination") => io::ErrorKind::Other,
                "FileNotFoundException" => io::ErrorKind::NotFound,
                "PathIsNotEmptyDirectoryException" => io::ErrorKind::DirectoryNotEmpty,
                "AccessControlException" | "AuthorizationException" => io::ErrorKind::PermissionDenied,
                "InvalidPathException" => {
                    return Error::BadName { name: name.to_owned(), reason: first_line(message) };
                }
                _ => io::ErrorKind::Other,
            },
            HdfsFailure::Library(_) | HdfsFailure::Silent(NoAnswer::Broken) => io::ErrorKind::Other,
            HdfsFailure::Silent(NoAnswer::Late(_)) => io::ErrorKind::TimedOut,
        };
        Error::io(name, action, io::Error::new(kind, self.to_string()))
    }

    /// Returns whether the call certainly changed nothing and may succeed later: no name node was reached, or
    /// it answered "not now". After a broken connection or a missed deadline the call may have been executed
    /// all the same.
    pub(super) fn changed_nothing(&self) -> bool {
        match self {
            HdfsFailure::Library(HdfsError::IOError(error)) => matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
            ),
            HdfsFailure::Library(HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _)) => {
                matches!(
                    short(class),
                    "SafeModeException"
                        | "StandbyException"
                        | "RetriableException"
                        | "ServerTooBusyException"
                )
            }
            _ => false,
        }
    }

    /// Returns whether the outcome of the call is unknown, because the name node gave no answer.
    pub(super) fn is_silence(&self) -> bool {
        let unanswered = matches!(self, HdfsFailure::Silent(_) | HdfsFailure::Library(HdfsError::IOError(_)));
        unanswered && !self.changed_nothing()
    }
}

fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or_default()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(class: &str, message: &str) -> Error {
        HdfsFailure::Library(HdfsError::RPCError(class.to_owned(), message.to_owned()))
            .error("hdfs://n/x", "open")
    }

    #[test]
    fn both_errors_for_a_missing_file_are_not_found() {
        let missing =
            HdfsFailure::Library(HdfsError::FileNotFound("/x".to_owned())).error("hdfs://n/x", "open");
        assert!(matches!(missing, Error::NotFound { path } if path == "hdfs://n/x"));
        let missing = sorted("java.io.FileNotFoundException", "File does not exist: /x\n\tat org.apache");
        assert!(matches!(missing, Error::NotFound { .. }));
    }

    #[test]
    fn exceptions_of_one_name_are_told_apart_by_what_they_say() {
        let class = "java.io.FileNotFoundException";
        for message in ["Path is not a file: /x", "rename destination parent /y not found."] {
            assert!(matches!(sorted(class, message), Error::Io { .. }), "{message}");
        }
        let class = "org.apache.hadoop.security.AccessControlException";
        assert!(matches!(sorted(class, "Permission denied: user=me"), Error::Denied { .. }));
    }

    #[test]
    fn messages_have_no_debug_output_of_data_nodes() {
        let text = "All DataNodes failed: [DatanodeInfoProto { id: 1 }]".to_owned();
        assert_eq!(
            HdfsFailure::Library(HdfsError::DataTransferError(text)).to_string(),
            "All DataNodes failed"
        );
    }

    #[test]
    fn messages_have_no_stack_trace() {
        let Error::Io { source, .. } = sorted("org.apache.hadoop.SafeModeException", "safe\n\tat x.y\n")
        else {
            panic!("not an i/o error");
        };
        assert_eq!(source.to_string(), "SafeModeException: safe");
    }
}
