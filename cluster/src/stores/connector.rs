//! Kinds of remote stores: the schemes of their addresses, and how each is connected to.

use std::env;
use std::ffi::OsString;
use std::sync::Arc;

use super::error::Error;
use super::hdfs::{Hdfs, HdfsLimits, one_spelling};
use super::object::{Bucket, ObjectLimits};
use super::pattern::{BEHIND_A_PATTERN, is_pattern};
use super::store::Store;

/// A kind of remote store.
pub(crate) struct Connector {
    /// Schemes of its addresses. The first is that of the prefix, so that each store has one prefix, however its scheme is spelled.
    schemes: &'static [&'static str],
    kind: StoreKind,
}

/// Place in which files lie.
#[derive(PartialEq)]
enum StoreKind {
    /// Folders of an HDFS. The settings name the host if an address does not.
    Hdfs,
    /// A bucket, in which files have keys.
    Bucket,
}

static CONNECTORS: [Connector; 6] = [
    Connector { schemes: &["hdfs"], kind: StoreKind::Hdfs },
    Connector { schemes: &["viewfs"], kind: StoreKind::Hdfs },
    Connector { schemes: &["s3", "s3a"], kind: StoreKind::Bucket },
    Connector { schemes: &["gs"], kind: StoreKind::Bucket },
    Connector { schemes: &["az"], kind: StoreKind::Bucket },
    Connector { schemes: &["abfss", "abfs"], kind: StoreKind::Bucket },
];

impl Connector {
    /// Returns the connector for addresses with a scheme.
    ///
    /// # Errors
    /// The reason for which there is none.
    pub fn of(scheme: &str) -> Result<&'static Connector, String> {
        let known = CONNECTORS.iter().find(|connector| connector.schemes.contains(&scheme));
        known.ok_or_else(|| match scheme {
            "oss" | "cos" | "cosn" | "obs" => format!(
                "{scheme} is not known, but such a store speaks S3: name it s3://, with its address in AWS_ENDPOINT_URL"
            ),
            _ => {
                let known: Vec<_> = CONNECTORS.iter().map(|connector| connector.schemes[0]).collect();
                format!("{scheme} is not known; {}, file and plain paths are", known.join(", "))
            }
        })
    }

    /// Whether Hadoop writes addresses of this scheme with one slash, as in `hdfs:/path`.
    pub fn has_short_addresses(scheme: &str) -> bool {
        scheme == "file" || Self::of(scheme).is_ok_and(|connector| connector.kind == StoreKind::Hdfs)
    }

    /// Returns the prefix of the store of an address with this authority.
    ///
    /// # Errors
    /// The reason for which the address names no store.
    pub fn prefix(&self, authority: &str) -> Result<String, String> {
        let scheme = self.schemes[0];
        match self.kind {
            StoreKind::Hdfs => Ok(format!("{scheme}://{}", one_spelling(authority))),
            StoreKind::Bucket if authority.is_empty() => {
                Err(format!("it names no bucket: write {scheme}://bucket/path"))
            }
            StoreKind::Bucket => Ok(format!("{scheme}://{authority}")),
        }
    }

    /// Returns a path without empty names, `.` and `..`.
    ///
    /// # Errors
    /// The reason for which a `..` cannot be resolved.
    pub fn path(&self, path: &str) -> Result<String, String> {
        let mut names: Vec<&str> = Vec::new();
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            match name {
                ".." if names.iter().any(|name| is_pattern(name)) => return Err(BEHIND_A_PATTERN.to_owned()),
                ".." if self.kind == StoreKind::Bucket => {
                    return Err("there is no \"..\" in a bucket".to_owned());
                }
                ".." => _ = names.pop().ok_or("it leads above the root")?,
                name => names.push(name),
            }
        }
        Ok(format!("/{}", names.join("/")))
    }

    /// Makes the store of a prefix, and connects to nothing.
    ///
    /// # Errors
    /// [`Error::BadName`] when the settings lead to no store.
    pub fn connect(&self, prefix: &str) -> Result<Arc<dyn Store>, Error> {
        Ok(match self.kind {
            StoreKind::Hdfs => Arc::new(Hdfs::new(prefix, HdfsLimits::default())?),
            StoreKind::Bucket => {
                let text = |(name, value): (OsString, OsString)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                };
                let settings: Vec<_> = env::vars_os().filter_map(text).collect();
                Arc::new(Bucket::new(prefix, &settings, ObjectLimits::default())?)
            }
        })
    }
}
