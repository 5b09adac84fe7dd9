//! Tests of what a served index refuses, which changes nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::http::{HttpServer, JSON, JSON_LINES, empty_index, read_answer};
use crate::support::{Folder, wait_until};

const DOC: &str = r#"{"id":"a","text":"春眠不觉晓"}"#;

/// Returns the number of documents of the default topic, after the server has ended.
fn documents(here: &Folder) -> usize {
    here.run("--quiet index export ix").ends(0).stdout.lines().count()
}

#[test]
fn wrong_requests_change_nothing() {
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "--max-body 1K --max-batch 3");
    let insert = "/topics/default/insert";
    let long = format!(r#"{{"id":"a","text":"{}"}}"#, "x".repeat(2000));
    let lines = format!("{DOC}\n{DOC}\nno JSON\n");
    for (status, answer) in [
        (413, server.post(insert, &long)),
        (413, server.ask("POST", insert, &[JSON_LINES], &format!("{DOC}\n").repeat(4))),
        (400, server.ask("POST", insert, &[JSON_LINES], &lines)),
        (400, server.post(insert, "")),
        (400, server.post(insert, r#"{"id":"a"}"#)),
        (400, server.post(insert, r#"{"id":"a","text":"b","texts":"c"}"#)),
        (400, server.post("/topics/_a/insert", DOC)),
        (400, server.post("/topics/..%2Fa/insert", DOC)),
        (415, server.ask("POST", insert, &[("Content-Type", "text/plain")], DOC)),
        (415, server.ask("POST", insert, &[], DOC)),
        (405, server.ask("GET", insert, &[JSON], DOC)),
        (404, server.post("/nothing", DOC)),
        (400, server.post("/topics/default/query?within=x", DOC)),
        (400, server.post("/topics/default/query?within=3", DOC)),
        (400, server.post("/topics/default/query?limit=1001", DOC)),
        (400, server.post("/topics/default/query?foo=1", DOC)),
        (400, server.post("/topics/default/query-insert?limit=1&foo=1", DOC)),
        (400, server.post("/topics/default/insert?foo=1", DOC)),
        (400, server.ask("GET", "/topics?foo", &[], "")),
        (415, server.ask("POST", insert, &[("Content-Type", "application/jsonx, text/plain")], DOC)),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert!(body["error"].as_str().is_some_and(|line| line.len() > 5), "{answer:?}");
    }
    for path in ["query?foo=1", "insert?foo=1", "delete?foo"] {
        let answer = server.post(&format!("/topics/default/{path}"), DOC);
        assert!(answer.status == 400 && answer.body.contains("foo"), "{answer:?}");
    }
    let get = server.ask("GET", insert, &[], "");
    assert!(get.head.to_lowercase().contains("allow: post"), "{get:?}");
    let wrong = server.ask("POST", insert, &[JSON_LINES], &lines).body;
    assert!(wrong.contains("line 3"), "{wrong}");
    // A length that is more than what comes, headers that are none, and no request at all.
    for request in [
        "POST /topics/default/insert HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{",
        "\0\0\0\r\n\r\n",
        "",
    ] {
        let mut client = server.connect();
        client.write_all(request.as_bytes()).unwrap();
    }
    assert_eq!(server.post("/topics/default/query", DOC).matches(), [[""; 0]]);
    assert_eq!(server.end(), Some(0));
    assert_eq!(documents(&here), 0);
}

/// Sends the headers of an insert, and the first byte of its body.
fn begin_insert(server: &HttpServer, bytes: usize) -> TcpStream {
    let mut client = server.connect();
    let head = "POST /topics/default/insert HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Content-Type: application/json\r\nContent-Length: ";
    client.write_all(format!("{head}{bytes}\r\n\r\n{{").as_bytes()).unwrap();
    client
}

#[test]
fn slow_clients_keep_nobody_out() {
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "--timeout 3 --max-requests 2");
    // They send no more than the first byte.
    let slow: Vec<_> = (0..20).map(|_| begin_insert(&server, 99)).collect();
    for _ in 0..5 {
        assert_eq!(server.post("/topics/default/query", DOC).status, 200);
    }
    for client in slow {
        assert_eq!(read_answer(client).unwrap().status, 408);
    }
    // A client that never ends its headers is sent away.
    let mut client = server.connect();
    client.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let began = Instant::now();
    client.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let _ = client.read_to_end(&mut Vec::new());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(server.end(), Some(0));
    assert_eq!(documents(&here), 0);
}

#[test]
fn bodies_have_bounds_of_their_own_and_together() {
    let here = empty_index("exact");
    let server = HttpServer::start(&here, "--timeout 20 --max-body 1M --max-bodies 1M");
    // The length alone is enough for a refusal.
    let refused = read_answer(begin_insert(&server, (1 << 20) + 1)).unwrap();
    assert!(refused.status == 413 && refused.body.contains("--max-body"), "{refused:?}");
    let doc = format!(r#"{{"id":"a","text":"{}"}}"#, "x".repeat(200 << 10));
    let mut large = None;
    wait_until("there is no room", Duration::from_secs(20), || {
        // The document may have come first and taken the room of an earlier one.
        let client = large.insert(begin_insert(&server, 1 << 20));
        client.write_all(&vec![b' '; 900 << 10]).unwrap();
        thread::sleep(Duration::from_millis(200));
        let answer = server.post("/topics/default/query", &doc);
        assert!([200, 503].contains(&answer.status), "{answer:?}");
        answer.status == 503
    });
    assert_eq!(server.post("/topics/default/query", DOC).status, 200);
    drop(large);
    wait_until("there is room again", Duration::from_secs(5), || {
        server.post("/topics/default/query", &doc).status == 200
    });
    assert_eq!(server.end(), Some(0));
}

#[test]
fn pages_of_other_sites_read_nothing() {
    let here = empty_index("exact");
    let ask = |server: &HttpServer, host: &str| server.ask("GET", "/topics", &[("Host", host)], "").status;
    let server = HttpServer::start(&here, "");
    let port = server.address.port();
    for host in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"] {
        assert_eq!(ask(&server, &format!("{host}:{port}")), 200, "{host}");
    }
    for (path, host) in [("/topics", "evil.example"), ("/", "evil.example:80"), ("/readyz", "10.0.0.1")] {
        let answer = server.ask("GET", path, &[("Host", host)], "");
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer.status, 421, "{answer:?}");
        assert!(body["error"].as_str().unwrap().contains("--allow-host"), "{body}");
    }
    let answer = server.ask("GET", "http://evil.example/topics", &[("Host", "localhost")], "");
    assert_eq!(answer.status, 421, "{answer:?}");
    assert_eq!(server.end(), Some(0));
    let server = HttpServer::start(&here, "--allow-host dedup.example");
    assert_eq!((ask(&server, "dedup.example"), ask(&server, "evil.example")), (200, 421));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn options_of_any_size_end_no_server() {
    let here = empty_index("exact");
    let most = u64::MAX;
    for options in [
        format!("--timeout {most} --grace {most} --max-requests {most} --max-batch {most}"),
        "--timeout 1 --grace 0 --max-requests 1 --max-batch 1 --max-body 1 --max-bodies 1 --merge-rate 1"
            .to_owned(),
    ] {
        let server = HttpServer::start(&here, &options);
        let answer = server.post("/topics/default/query", DOC);
        assert!([200, 413].contains(&answer.status), "{answer:?}");
        assert_eq!(server.ask("GET", "/readyz", &[], "").status, 200);
        assert_eq!(server.end(), Some(0));
    }
    for option in [
        "--timeout",
        "--grace",
        "--max-requests",
        "--max-batch",
        "--max-body",
        "--max-bodies",
        "--merge-rate",
    ] {
        for value in ["-1", "NaN", "", "1e3", "18446744073709551616"] {
            let run = here.run(&format!("index serve ix {option}={value}"));
            assert!(run.code == Some(2) && run.stderr.lines().count() == 1, "{option} {value}: {run:?}");
            assert!(run.stderr.contains(option), "{run:?}");
        }
    }
}

/// Each server is told to end as soon as it says that it serves.
#[test]
fn a_server_that_has_just_begun_ends_well() {
    let here = empty_index("exact");
    for _ in 0..20 {
        assert_eq!(HttpServer::start(&here, "").end(), Some(0));
    }
}

#[test]
fn a_body_of_the_largest_size_is_taken_from_each_of_several_tokens() {
    let here = empty_index("exact");
    let line =
        |name: &str| format!("{{\"name\":\"{name}\",\"token\":\"{name}{name}{name}\",\"write\":true}}\n");
    here.write("tokens", line("first-") + &line("second-"));
    fs::set_permissions(here.path("tokens"), fs::Permissions::from_mode(0o600)).unwrap();
    let server = HttpServer::start(&here, "--tokens tokens --max-body 1M --max-bodies 1M");
    let body = format!("{{\"id\":\"a\",\"text\":\"{}\"}}", "x".repeat(900_000));
    let headers = [JSON, ("Authorization", "Bearer first-first-first-")];
    assert_eq!(server.ask("POST", "/topics/news/insert", &headers, &body).status, 200);
}

#[test]
fn a_token_says_who_may_do_what() {
    let here = empty_index("exact");
    let tokens = [
        r#"{"name":"all","token":"all-all-all-all-all","write":true}"#,
        r#"{"name":"news","token":"news-news-news-news","topics":["news"],"documents_per_second":2}"#,
    ];
    here.write("tokens", tokens.join("\n"));
    fs::set_permissions(here.path("tokens"), fs::Permissions::from_mode(0o600)).unwrap();
    let server = HttpServer::start(&here, "--tokens tokens --access-log access");
    let ask = |token: &str, path: &str| {
        server.ask("POST", path, &[JSON, ("Authorization", &format!("Bearer {token}"))], DOC)
    };
    let (all, news) = ("all-all-all-all-all", "news-news-news-news");
    for (status, answer) in [
        (401, server.post("/topics/news/query", DOC)),
        (401, ask("all-all-all-all-al", "/topics/news/query")),
        (401, ask("", "/topics/news/query")),
        (401, server.ask("GET", "/metrics", &[], "")),
        (403, ask(news, "/topics/forum/query")),
        (403, ask(news, "/topics/news/insert")),
        (200, ask(news, "/topics/news/query")),
        (200, ask(news, "/topics/news/query")),
        (429, ask(news, "/topics/news/query")),
        (200, ask(all, "/topics/news/insert")),
        (200, ask(all, "/topics/forum/insert")),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let topics = server.ask("GET", "/topics", &[("Authorization", &format!("bearer {news}"))], "").json();
    assert_eq!(topics["topics"].as_array().unwrap().len(), 1);
    for path in ["/healthz", "/readyz", "/", "/openapi.json"] {
        assert_eq!(server.ask("GET", path, &[], "").status, 200);
    }
    assert_eq!(server.end(), Some(0));
    let log = fs::read_to_string(here.path("access")).unwrap();
    assert_eq!(log.lines().count(), 16, "{log}");
    assert!(
        log.contains(r#""token":"news","method":"POST","path":"/topics/news/query","status":429"#),
        "{log}"
    );
    assert!(!log.contains(all) && !log.contains(news));
}

#[test]
fn other_machines_need_a_token_and_a_certificate() {
    let here = empty_index("exact");
    here.write("tokens", r#"{"name":"a","token":"0123456789abcdef"}"#);
    for options in ["", "--tokens tokens"] {
        here.run(&format!("index serve ix --address 0.0.0.0:0 {options}"))
            .fails(2, &["--tokens, --tls-cert"]);
    }
    for (wrong, line) in
        [("", "has none"), ("{}", "line 1"), (r#"{"name":"a","token":"short"}"#, "16 characters")]
    {
        here.write("wrong", wrong);
        let run = here.run("index serve ix --address 127.0.0.1:0 --tokens wrong");
        assert!(run.code != Some(0) && run.stderr.contains(line), "{run:?}");
    }
}

/// Makes an authority, and a certificate of it for `name`. Returns them as PEM, and the key of the latter.
fn certificate(name: &str) -> [String; 3] {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new([name.to_owned()]).unwrap();
    let own = own.signed_by(&own_key, &Issuer::new(params, key)).unwrap();
    [authority, own.pem(), own_key.serialize_pem()]
}

#[test]
fn a_certificate_is_shown_and_wanted() {
    let here = empty_index("exact");
    let ([authority, server_cert, server_key], [clients, client_cert, client_key]) =
        (certificate("localhost"), certificate("client"));
    for (name, pem) in [("server.pem", &server_cert), ("server.key", &server_key), ("clients.pem", &clients)]
    {
        here.write(name, pem);
    }
    let server =
        HttpServer::start(&here, "--tls-cert server.pem --tls-key server.key --client-ca clients.pem");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let ask = |own: Option<(&str, &str)>| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots.clone());
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, server.connect());
        // The server may close before it has read all.
        let _ = stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n");
        read_answer(stream).map(|answer| answer.status)
    };
    assert_eq!(ask(Some((&client_cert, &client_key))), Some(200));
    assert_eq!(ask(None), None);
    assert_eq!(ask(Some((&server_cert, &server_key))), None);
    assert_eq!(server.end(), Some(0));
}
