//! Construction of a client of one bucket from a prefix and the environment.

use std::str::FromStr;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, ClientConfigKey, CredentialProvider, ObjectStore, RetryConfig};

use super::failure::{ObjectFailure, readable};
use crate::stores::error::Error;

/// The operations that a bucket of any service offers.
pub(crate) trait Client: ObjectStore + MultipartStore + PaginatedListStore {}

impl<T: ObjectStore + MultipartStore + PaginatedListStore> Client for T {}

/// Fetches credentials once; the client keeps them.
pub(crate) type SignIn = Box<dyn Fn() -> BoxFuture<'static, Result<(), ObjectFailure>> + Send + Sync>;

/// A configured bucket to which nothing was sent yet.
pub(crate) struct Connection {
    pub client: Arc<dyn Client>,
    pub sign_in: SignIn,
    /// Sources of credentials of this service, for messages.
    pub sources: &'static str,
    /// Whether the number of a part alone identifies it among all uploads to one object.
    pub numbers_name_parts: bool,
}

/// Timeout of the library. Our own deadlines are always shorter. A user's own setting, such as `AWS_TIMEOUT`,
/// overrides it.
const TIMEOUT: &str = "1h";

/// Names and values as in the environment.
type Settings = [(String, String)];

/// Creates the client of a bucket.
///
/// `prefix`: `s3://bucket`, `gs://bucket`, `az://container` or
/// `abfss://container@account.dfs.core.windows.net`. `settings`: those that begin with `AWS_`, `GOOGLE_` or
/// `AZURE_` are read, under the names that the library documents.
///
/// # Errors
/// [`Error::BadName`] when the settings lead to no bucket, or to plain HTTP that they do not allow.
pub(crate) fn connect(prefix: &str, settings: &Settings) -> Result<Connection, Error> {
    // An error says that another bucket has installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let bad = |reason: String| Error::BadName { name: prefix.to_owned(), reason };
    let connection = match prefix.split("://").next() {
        Some("gs") => google(prefix, settings),
        Some("az" | "abfss") => azure(prefix, settings),
        _ => amazon(prefix, settings),
    };
    match connection {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(plain)) => Err(bad(plain.to_owned())),
        Err(error) => Err(bad(readable(&error))),
    }
}

/// A connection. The outer error is the library's, for invalid settings; the inner one tells how to allow
/// plain HTTP.
type Attempt = object_store::Result<Result<Connection, &'static str>>;

fn amazon(prefix: &str, settings: &Settings) -> Attempt {
    let builder = AmazonS3Builder::new()
        .with_retry(no_retries())
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), TIMEOUT);
    let builder =
        configured(builder, settings, "AWS_", |builder, key, value| builder.with_config(key, value));
    let value = |key| builder.get_config_value(&key);
    let endpoint = value(AmazonS3ConfigKey::S3Endpoint).or_else(|| value(AmazonS3ConfigKey::Endpoint));
    let http = value(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    if is_plain(endpoint) && !is_true(http) {
        return Ok(Err("its endpoint is http://, which only AWS_ALLOW_HTTP=true allows"));
    }
    let unsigned = is_true(value(AmazonS3ConfigKey::SkipSignature));
    let client = Arc::new(builder.with_url(prefix).build()?);
    let sign_in = sign_in(unsigned, client.credentials());
    let sources = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are read, not ~/.aws; AWS_SKIP_SIGNATURE=true \
                   reads a public bucket";
    Ok(Ok(Connection { client, sign_in, sources, numbers_name_parts: false }))
}

fn google(prefix: &str, settings: &Settings) -> Attempt {
    let builder = GoogleCloudStorageBuilder::new()
        .with_retry(no_retries())
        .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), TIMEOUT);
    let builder =
        configured(builder, settings, "GOOGLE_", |builder, key, value| builder.with_config(key, value));
    let unsigned = is_true(builder.get_config_value(&GoogleConfigKey::SkipSignature));
    let client = Arc::new(builder.with_url(prefix).build()?);
    let sign_in = sign_in(unsigned, client.credentials());
    let sources = "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT names a file with some; \
                   GOOGLE_SKIP_SIGNATURE=true reads a public bucket";
    Ok(Ok(Connection { client, sign_in, sources, numbers_name_parts: false }))
}

fn azure(prefix: &str, settings: &Settings) -> Attempt {
    let builder = MicrosoftAzureBuilder::new()
        .with_retry(no_retries())
        .with_config(AzureConfigKey::Client(ClientConfigKey::Timeout), TIMEOUT);
    let builder =
        configured(builder, settings, "AZURE_", |builder, key, value| builder.with_config(key, value));
    let value = |key| builder.get_config_value(&key);
    let http = value(AzureConfigKey::Client(ClientConfigKey::AllowHttp));
    if is_plain(value(AzureConfigKey::Endpoint)) && !is_true(http) {
        return Ok(Err("its endpoint is http://, which only AZURE_ALLOW_HTTP=true allows"));
    }
    let unsigned = is_true(value(AzureConfigKey::SkipSignature));
    let client = Arc::new(builder.with_url(prefix).build()?);
    let sign_in = sign_in(unsigned, client.credentials());
    let sources = "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN and AZURE_CLIENT_ID with its secret are read; \
                   AZURE_SKIP_SIGNATURE=true reads a public container";
    Ok(Ok(Connection { client, sign_in, sources, numbers_name_parts: true }))
}

/// Applies all settings that begin with `prefix` and whose names the builder knows.
fn configured<B, K: FromStr>(
    builder: B,
    settings: &Settings,
    prefix: &str,
    with: impl Fn(B, K, &str) -> B,
) -> B {
    let ours = settings.iter().filter(|(name, _)| name.starts_with(prefix));
    ours.fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => with(builder, key, value),
        Err(_) => builder,
    })
}

/// Returns how to fetch credentials of one service. Nothing is fetched if requests are `unsigned`.
fn sign_in<C: 'static>(unsigned: bool, credentials: &Arc<dyn CredentialProvider<Credential = C>>) -> SignIn {
    let credentials = Arc::clone(credentials);
    Box::new(move || {
        let credentials = Arc::clone(&credentials);
        async move {
            if !unsigned {
                credentials.get_credential().await?;
            }
            Ok(())
        }
        .boxed()
    })
}

/// Turns off the library's retries, because `remote.rs` alone decides about them.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, backoff: BackoffConfig::default(), ..RetryConfig::default() }
}

fn is_plain(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.to_ascii_lowercase().starts_with("http://"))
}

fn is_true(value: Option<String>) -> bool {
    value
        .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn refused(prefix: &str, with: &[(&str, &str)]) -> String {
        connect(prefix, &settings(with)).err().unwrap().to_string()
    }

    #[test]
    fn every_service_is_reached_by_its_own_settings() {
        let key = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "eu-west-1")];
        let s3 = connect("s3://bucket", &settings(&key)).unwrap();
        assert_eq!(s3.client.to_string(), "AmazonS3(bucket)");
        let gs = connect("gs://bucket", &settings(&[("GOOGLE_SKIP_SIGNATURE", "true")])).unwrap();
        assert_eq!(gs.client.to_string(), "GoogleCloudStorage(bucket)");
        let account = [("AZURE_STORAGE_ACCOUNT_NAME", "a"), ("AZURE_SKIP_SIGNATURE", "true")];
        let az = connect("az://container", &settings(&account)).unwrap();
        assert!(az.client.to_string().contains("container: container"), "{}", az.client);
        let hadoop = connect("abfss://container@account.dfs.core.windows.net", &settings(&account)).unwrap();
        assert!(hadoop.client.to_string().contains("account: account"), "{}", hadoop.client);
    }

    #[test]
    fn settings_that_cannot_work_are_refused_at_once_and_say_why() {
        let error = refused("s3://bucket", &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]);
        assert!(error.contains("AWS_ALLOW_HTTP=true"), "{error}");
        let error = refused("s3://bucket", &[("AWS_ACCESS_KEY_ID", "a")]);
        assert!(error.contains("SecretAccessKey"), "{error}");
        let error = refused("az://container", &[]);
        assert!(error.contains("Account"), "{error}");
        let error = refused("abfss://c@account.example.com", &[]);
        assert!(error.contains("account.example.com"), "{error}");
    }
}
