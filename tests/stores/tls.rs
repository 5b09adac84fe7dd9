//! A bucket over TLS: the program trusts the authorities of the system, and no others.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::{Folder, run};

/// Answers one request: no bucket and no object of this name exists.
fn answer(stream: TcpStream, config: &Arc<ServerConfig>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut request = BufReader::new(StreamOwned::new(connection, stream));
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let body = "<Error><Code>NoSuchBucket</Code></Error>";
    let head =
        format!("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut stream = request.into_inner();
    stream.write_all((head + body).as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

#[test]
fn a_bucket_is_reached_over_tls_if_its_certificate_is_trusted() {
    let here = Folder::new();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    here.write("ca.pem", cert.pem());
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![cert.der().clone()],
            PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap(),
        );
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ended = AtomicBool::new(false);
    here.write("other.pem", generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem());
    let [trusted, untrusted] = thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // A client that does not trust the certificate hangs up.
                drop(answer(stream, &config));
            }
        });
        let dedup = |trusted: &str| {
            let mut command = here.command("dedup s3://bucket/in out");
            command.env("SSL_CERT_FILE", here.path(trusted));
            command.env("AWS_ENDPOINT", format!("https://{address}")).env("AWS_REGION", "us-east-1");
            run(command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret"))
        };
        let results = [dedup("ca.pem"), dedup("other.pem")];
        ended.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(address));
        results
    });
    trusted.fails(2, &["\"s3://bucket\" does not exist"]);
    untrusted.fails(1, &["s3://bucket/in", "invalid peer certificate"]);
}
