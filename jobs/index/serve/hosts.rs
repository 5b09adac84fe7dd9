//! Names by which clients may call a server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::Next;
use axum::response::Response;

use super::api_error::ApiError;

/// The names that a server answers to.
///
/// A server of the loopback has no tokens, and trusts whoever reaches it. A page of another site that lets its own name
/// resolve to the loopback (DNS rebinding) would so read every text through the browser of somebody on this machine. The
/// browser sends the name of the site then, which is none of these.
#[derive(Clone)]
pub(super) struct HostNames {
    address: IpAddr,
    names: Arc<[String]>,
}

impl HostNames {
    /// Makes those of a server at an address. `names`: further ones.
    pub fn new(address: SocketAddr, names: &[String]) -> Self {
        let names = names.iter().map(|name| name_of(name)).collect();
        HostNames { address: address.ip(), names }
    }

    /// Whether the host of a request, with a port or without, is one of the server. Every host is if other machines can reach
    /// the server, which needs a token then, and no names are given.
    fn allow(&self, host: &str) -> bool {
        if !self.address.is_loopback() && self.names.is_empty() {
            return true;
        }
        let name = name_of(host);
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
        let is_address = |address: IpAddr| address.is_loopback() || address == self.address;
        name == "localhost" || address.parse().is_ok_and(is_address) || self.names.contains(&name)
    }
}

/// Returns the name of a host without its port and the dot at its end.
fn name_of(host: &str) -> String {
    let port = host.rfind(':').filter(|colon| !host[*colon..].contains(']'));
    let name = port.map_or(host, |colon| &host[..colon]);
    name.strip_suffix('.').unwrap_or(name).to_lowercase()
}

/// Refuses requests for another host. Clients that name none, as those of HTTP/1.0 may, are no browsers.
pub(super) async fn check_host(
    State(hosts): State<HostNames>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let of_uri = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let of_headers = request.headers().get_all(HOST).iter().map(|host| host.as_bytes());
    for host in of_uri.into_iter().chain(of_headers) {
        let host = String::from_utf8_lossy(host);
        if !hosts.allow(&host) {
            let line = format!("this server does not answer to the host \"{host}\" (--allow-host NAME)");
            return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, line));
        }
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_answers_to_its_own_names_alone() {
        let hosts = HostNames::new("127.0.0.1:80".parse().unwrap(), &["Dedup.Example:8080".to_owned()]);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.:1",
            "127.0.0.1",
            "127.9.8.7:80",
            "[::1]",
            "[::1]:80",
            "dedup.example:9",
        ] {
            assert!(hosts.allow(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "10.0.0.1",
            "[::2]:80",
            "a:b:80",
        ] {
            assert!(!hosts.allow(host), "{host}");
        }
        let open = HostNames::new("10.0.0.1:80".parse().unwrap(), &[]);
        assert!(open.allow("anything"));
        let named = HostNames::new("10.0.0.1:80".parse().unwrap(), &["a".to_owned()]);
        assert!(named.allow("a") && named.allow("10.0.0.1:80") && !named.allow("b"));
    }
}
