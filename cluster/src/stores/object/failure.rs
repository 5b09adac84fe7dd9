//! Failures of requests to an object store: their cause, the error that callers see, and whether to retry.

use std::{fmt, io};

use object_store::path;

use crate::stores::error::Error;
use crate::stores::remote::NoAnswer;

/// Largest length of an error text of the service that a user sees, in characters.
const MESSAGE_CHARS: usize = 200;
/// Text that the library writes before the status of an answer. The library's type for it is private.
const STATUS: &str = "Server returned non-2xx status code: ";

/// Reason why a request has no answer.
#[derive(Debug)]
pub(crate) enum ObjectFailure {
    Library(object_store::Error),
    /// The task of the request gave no answer.
    Silent(NoAnswer),
    /// The number of bytes is not the one that was requested.
    Length {
        wanted: usize,
        got: usize,
    },
    /// The object is not the one that was opened.
    Changed,
}

impl From<NoAnswer> for ObjectFailure {
    fn from(silence: NoAnswer) -> Self {
        ObjectFailure::Silent(silence)
    }
}

impl From<object_store::Error> for ObjectFailure {
    fn from(error: object_store::Error) -> Self {
        match error {
            // Writes with a condition handle this error themselves. A read has one condition: the tag that
            // the object had when it was opened.
            object_store::Error::Precondition { .. } => ObjectFailure::Changed,
            error => ObjectFailure::Library(error),
        }
    }
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectFailure::Library(error) => f.write_str(&readable(error)),
            ObjectFailure::Silent(NoAnswer::Late(limit)) => write!(f, "no answer within {limit:?}"),
            ObjectFailure::Silent(NoAnswer::Broken) => write!(f, "the client broke off"),
            ObjectFailure::Length { wanted, got } => {
                write!(f, "{got} bytes came where {wanted} were asked for")
            }
            ObjectFailure::Changed => write!(f, "it changed while it was read"),
        }
    }
}

impl ObjectFailure {
    /// Returns whether no such object or no such bucket exists.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            ObjectFailure::Library(object_store::Error::NotFound { .. }) => true,
            ObjectFailure::Library(error) => Answer::of(error).is_some_and(|answer| answer.status == 404),
            _ => false,
        }
    }

    /// Returns whether the service does not know an upload that was to be completed, because it was completed
    /// or aborted before.
    pub(crate) fn is_lost_upload(&self) -> bool {
        let ObjectFailure::Library(error) = self else { return false };
        self.is_absence() || Answer::of(error).is_some_and(|answer| answer.code == "InvalidBlockList")
    }

    /// Returns whether the service refused for good without giving a reason.
    pub(crate) fn is_unexplained(&self) -> bool {
        let ObjectFailure::Library(error) = self else { return false };
        let wordless = |answer: Answer| (400..500).contains(&answer.status) && answer.code.is_empty();
        Answer::of(error).is_some_and(wordless) && !self.may_pass()
    }

    /// Returns whether the failure is transient, so that a retry may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        use object_store::Error as E;
        let error = match self {
            ObjectFailure::Silent(_) | ObjectFailure::Length { .. } => return true,
            ObjectFailure::Changed => return false,
            ObjectFailure::Library(error) => error,
        };
        if !matches!(error, E::Generic { .. } | E::AlreadyExists { .. } | E::JoinError { .. }) {
            return false;
        }
        // S3 answers 400 RequestTimeout when a request came too slowly, 409 while another request is at work,
        // and 200 before it knows that it will fail.
        Answer::of(error).is_none_or(|answer| {
            answer.status >= 500
                || matches!(answer.status, 200 | 408 | 409 | 429)
                || answer.code == "RequestTimeout"
        })
    }

    /// Returns the error for callers that performed `action` on `name`.
    pub(crate) fn at(self, name: &str, action: &'static str) -> Error {
        use object_store::Error as E;
        let kind = match &self {
            ObjectFailure::Library(E::InvalidPath { source }) => {
                return Error::BadName { name: name.to_owned(), reason: unusable(source) };
            }
            ObjectFailure::Library(E::Unauthenticated { .. } | E::PermissionDenied { .. }) => self.denial(),
            ObjectFailure::Library(_) if self.is_absence() => io::ErrorKind::NotFound,
            ObjectFailure::Library(error) => match Answer::of(error) {
                Some(answer) if matches!(answer.status, 401 | 403) => self.denial(),
                // The library reports a denied removal this way when it removes several objects.
                None if error.to_string().contains("(code: AccessDenied)") => io::ErrorKind::PermissionDenied,
                _ => io::ErrorKind::Other,
            },
            ObjectFailure::Silent(NoAnswer::Late(_)) => io::ErrorKind::TimedOut,
            ObjectFailure::Silent(NoAnswer::Broken) => io::ErrorKind::Other,
            ObjectFailure::Length { .. } | ObjectFailure::Changed => io::ErrorKind::InvalidData,
        };
        Error::io(name, action, io::Error::new(kind, self.to_string()))
    }

    /// Returns the kind of a denial. A wrong key or clock is distinguished from a missing permission, because
    /// its remedy differs.
    fn denial(&self) -> io::ErrorKind {
        let ObjectFailure::Library(error) = self else { return io::ErrorKind::Other };
        match Answer::of(error).map(|answer| answer.code).unwrap_or_default().as_str() {
            "" | "AccessDenied" | "Forbidden" | "AuthorizationPermissionMismatch" => {
                io::ErrorKind::PermissionDenied
            }
            _ => io::ErrorKind::Other,
        }
    }
}

/// Describes an object name that the library cannot express.
fn unusable(error: &path::Error) -> String {
    match error {
        path::Error::EmptySegment { path } => {
            format!("the object name {path:?} has nothing between two slashes")
        }
        path::Error::BadSegment { path, .. } => {
            format!("the object name {path:?} has a control character, or a part that is . or ..")
        }
        error => error.to_string(),
    }
}

/// Answer of a service that reports an error.
struct Answer {
    status: u16,
    /// Code such as `NoSuchBucket`. Empty where the service gives none.
    code: String,
    message: String,
}

impl Answer {
    fn of(error: &object_store::Error) -> Option<Self> {
        let mut cause: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            if let Some(rest) = text.strip_prefix(STATUS) {
                let body = rest.split_once(": ").map_or("", |(_, body)| body);
                return Some(Answer {
                    status: rest.get(..3)?.parse().ok()?,
                    code: element(body, "Code"),
                    message: element(body, "Message"),
                });
            }
            cause = error.source();
        }
        None
    }
}

/// Returns the text of the first XML element of this name.
fn element(xml: &str, name: &str) -> String {
    let text = xml.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
    shortened(text.map_or("", |(text, _)| text))
}

/// Returns the text of an error for a message, without keys, addresses with signatures, or pages of XML.
pub(crate) fn readable(error: &object_store::Error) -> String {
    if let Some(Answer { status, code, message }) = Answer::of(error) {
        return match (code.as_str(), message.as_str()) {
            ("", _) if matches!(status, 301 | 307) => WRONG_REGION.to_owned(),
            ("", _) => format!("the service answered {status}"),
            (code, "") => format!("{code} ({status})"),
            (code, message) => format!("{code} ({status}): {message}"),
        };
    }
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    if text.contains("redirect without LOCATION") { WRONG_REGION.to_owned() } else { shortened(&text) }
}

const WRONG_REGION: &str = "the service sent us elsewhere: AWS_REGION must be the region of the bucket";

/// Returns the first line, shortened, without what follows `?` in an address, because it may contain a
/// signature.
fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim_end();
    let mut words: Vec<&str> = Vec::new();
    for word in line.split(' ') {
        words.push(if word.contains("://") { word.split('?').next().unwrap_or_default() } else { word });
    }
    words.join(" ").chars().take(MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> ObjectFailure {
        ObjectFailure::Library(object_store::Error::Generic { store: "S3", source: text.to_owned().into() })
    }

    #[test]
    fn transient_failures_are_told_from_permanent_ones() {
        for status in ["500 Internal Server Error", "503 Slow Down", "429 Too Many Requests", "409 Conflict"]
        {
            assert!(generic(&format!("{STATUS}{status}: ")).may_pass(), "{status}");
        }
        for status in ["400 Bad Request", "403 Forbidden", "404 Not Found", "416 Range Not Satisfiable"] {
            assert!(!generic(&format!("{STATUS}{status}: ")).may_pass(), "{status}");
        }
        assert!(generic(&format!("{STATUS}400 Bad Request: <Code>RequestTimeout</Code>")).may_pass());
        assert!(generic("connection reset by peer").may_pass());
        assert!(!ObjectFailure::Changed.may_pass());
    }

    #[test]
    fn a_service_is_quoted_in_one_short_line() {
        let body = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>no bucket\nof that name</Message>\
                    <HostId>secret</HostId></Error>";
        let error = generic(&format!("{STATUS}404 Not Found: {body}"));
        assert_eq!(error.to_string(), "NoSuchBucket (404): no bucket");
        assert!(matches!(error.at("s3://b", "list"), Error::NotFound { .. }));
        let long = generic(&format!(
            "{STATUS}400 Bad Request: <Code>X</Code><Message>{}</Message>",
            "y".repeat(9999)
        ));
        assert!(long.to_string().len() < 300);
        assert_eq!(
            generic(&format!("{STATUS}502 Bad Gateway: <html>")).to_string(),
            "the service answered 502"
        );
    }

    #[test]
    fn no_signature_of_an_address_is_shown() {
        let text = generic("error sending request for url (https://a.b/c?sig=secret&x=y)").to_string();
        assert!(text.contains("https://a.b/c") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn a_wrong_key_is_not_called_a_missing_permission() {
        let answer = |code: &str| {
            let source = format!("{STATUS}403 Forbidden: <Code>{code}</Code><Message>m</Message>").into();
            let error = object_store::Error::PermissionDenied { path: "x".to_owned(), source };
            ObjectFailure::Library(error).at("s3://b/x", "open")
        };
        assert!(matches!(answer("AccessDenied"), Error::Denied { .. }));
        let Error::Io { source, .. } = answer("SignatureDoesNotMatch") else { panic!("not said") };
        assert_eq!(source.to_string(), "SignatureDoesNotMatch (403): m");
    }
}
