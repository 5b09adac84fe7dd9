//! Kinds of remote stores: the schemes of their addresses, and how each is connected to.

use std::env;
use std::sync::Arc;

use super::error::Error;
use super::hdfs::{Hdfs, HdfsLimits, one_spelling};
use super::object::{Bucket, ObjectLimits};
use super::store::Store;

/// A kind of remote store.
pub(crate) struct Connector {
    /// Schemes of its addresses.
    schemes: &'static [&'static str],
    /// Scheme of the prefix of its paths, so that each store has one prefix, however its scheme is spelled.
    scheme: &'static str,
    /// Naming of its files.
    naming: Naming,
    /// Makes the store of a prefix, and connects to nothing.
    pub connect: fn(&str) -> Result<Arc<dyn Store>, Error>,
}

/// Naming of the files of a store.
#[derive(PartialEq)]
enum Naming {
    /// In folders of a host, which the settings name if an address does not.
    Host,
    /// By keys in a bucket.
    Bucket,
}

static CONNECTORS: [Connector; 6] = [
    Connector { schemes: &["hdfs"], scheme: "hdfs", naming: Naming::Host, connect: hdfs },
    Connector { schemes: &["viewfs"], scheme: "viewfs", naming: Naming::Host, connect: hdfs },
    Connector { schemes: &["s3", "s3a"], scheme: "s3", naming: Naming::Bucket, connect: bucket },
    Connector { schemes: &["gs"], scheme: "gs", naming: Naming::Bucket, connect: bucket },
    Connector { schemes: &["az"], scheme: "az", naming: Naming::Bucket, connect: bucket },
    Connector { schemes: &["abfs", "abfss"], scheme: "abfss", naming: Naming::Bucket, connect: bucket },
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
        scheme == "file" || Self::of(scheme).is_ok_and(|connector| connector.naming == Naming::Host)
    }

    /// Returns the prefix of the store that an address names. `scheme`: as the address has it.
    ///
    /// # Errors
    /// The reason for which it names none.
    pub fn prefix(&self, scheme: &str, authority: &str) -> Result<String, String> {
        match self.naming {
            Naming::Host => Ok(format!("{}://{}", self.scheme, one_spelling(authority))),
            Naming::Bucket if authority.is_empty() => {
                Err(format!("it names no bucket: write {scheme}://bucket/path"))
            }
            Naming::Bucket => Ok(format!("{}://{authority}", self.scheme)),
        }
    }

    /// Returns a path without empty names, `.` and `..`.
    ///
    /// # Errors
    /// The reason for which a `..` cannot be resolved.
    pub fn path(&self, path: &str) -> Result<String, String> {
        let mut names = Vec::new();
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            match name {
                ".." if self.naming == Naming::Bucket => {
                    return Err("there is no \"..\" in a bucket".to_owned());
                }
                ".." => _ = names.pop().ok_or("it leads above the root")?,
                name => names.push(name),
            }
        }
        Ok(format!("/{}", names.join("/")))
    }
}

fn hdfs(prefix: &str) -> Result<Arc<dyn Store>, Error> {
    Ok(Arc::new(Hdfs::new(prefix, HdfsLimits::default())?))
}

fn bucket(prefix: &str) -> Result<Arc<dyn Store>, Error> {
    let settings = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Arc::new(Bucket::new(prefix, &settings.collect::<Vec<_>>(), ObjectLimits::default())?))
}
