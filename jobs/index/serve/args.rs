//! The command line of `index serve`.

use std::net::SocketAddr;
use std::time::Duration;

#[cfg(feature = "cli")]
use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};

#[cfg(feature = "cli")]
use crate::view::policy_of_index;
use batch::options::RefusedLines;
use nightly::Policy;
#[cfg(feature = "cli")]
use runtime::cli::values::{paths, size};
use runtime::corpus::input::WordOptions;

/// Options of `index serve`.
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub(crate) struct ServeArgs {
    /// Folder of the index
    #[cfg_attr(feature = "cli", arg(value_name = "INDEX", value_parser = paths()))]
    pub index: String,
    /// Address and port; port 0 is any free one, and the first line of the output names it
    ///
    /// An address that other machines can reach needs --tokens, --tls-cert and --tls-key.
    #[cfg_attr(feature = "cli", arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080"))]
    pub address: SocketAddr,
    /// Name by which clients may call the server, besides localhost and addresses of the loopback
    ///
    /// A page of another site that lets its name lead to this machine is kept out so. Name the host by which a proxy calls the
    /// server.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new()))]
    pub allow_host: Vec<String>,
    /// Answer only, while another process may change the index
    ///
    /// The changes of the other process are seen every ten seconds.
    #[cfg_attr(feature = "cli", arg(long))]
    pub read_only: bool,
    /// Keep for each topic that is asked for it which documents stay when near-duplicates go (GET /topics/NAME/view)
    #[cfg_attr(feature = "cli", arg(long))]
    pub view: bool,
    /// Which of two matching documents stays in a view: old-first, newest, longest or priority, as for index view
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHICH", default_value = "old-first", requires = "view", value_parser = policy_of_index))]
    pub view_policy: Policy,
    /// Largest number of bytes that all views and what-ifs may take; a topic that would exceed it has no view
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "1G", requires = "view", value_parser = size))]
    pub view_memory: u64,
    /// File with a JSON line for each token: {"name": "crawler", "token": "…", "topics": ["news"], "write": true,
    /// "documents_per_second": 1000}
    ///
    /// Without "topics" all are allowed, without "write" only queries, and without a rate any. A token has at least 16
    /// characters.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE"))]
    pub tokens: Option<String>,
    /// Certificate chain of the server, as PEM
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", requires = "tls_key"))]
    pub tls_cert: Option<String>,
    /// Private key of the certificate, as PEM
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", requires = "tls_cert"))]
    pub tls_key: Option<String>,
    /// Certificates of authorities, as PEM, one of which must have signed the certificate of each client
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", requires = "tls_cert"))]
    pub client_ca: Option<String>,
    /// Largest number of bytes of the body of a request
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "16M", value_parser = size))]
    pub max_body: u64,
    /// Largest number of bytes of all bodies at a time; requests beyond it get 503 and are to come back after a second
    ///
    /// A body counts from its first byte to the answer. If this is less than --max-body, it is that.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "64M", value_parser = size))]
    pub max_bodies: u64,
    /// Largest number of documents of a request
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value = "10000", value_parser = RangedU64ValueParser::<usize>::new().range(1..)))]
    pub max_batch: usize,
    /// Largest number of requests at a time; others get 503 and are to come back after a second
    ///
    /// A request counts once its body is there. If there are several tokens, one of them has at most half of the requests and
    /// of --max-bodies.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value = "256", value_parser = RangedU64ValueParser::<usize>::new().range(1..)))]
    pub max_requests: usize,
    /// Seconds that a request may take, its body included
    ///
    /// The part of a change that was done by then is durable, and the answer says how much that is. A body of which less than 8K a second comes is
    /// refused after five seconds.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", default_value = "30", value_parser = RangedU64ValueParser::<u64>::new().range(1..)))]
    pub timeout: u64,
    /// Seconds that requests have to end after SIGTERM
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", default_value = "10"))]
    pub grace: u64,
    /// Largest number of bytes a second that are written while segments are merged
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "64M", value_parser = size))]
    pub merge_rate: u64,
    /// Append a JSON line for each request to this file
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE"))]
    pub access_log: Option<String>,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub words: WordOptions,
    #[cfg_attr(feature = "cli", command(flatten))]
    pub refused: RefusedLines,
}

impl ServeArgs {
    /// Returns the time that requests have to end.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }

    /// Returns the time that a request may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
