//! The name of a table.

use std::fmt;

use cluster::Error;

/// Beginning of the name of a table.
const SCHEME: &str = "hbase://";

/// Name of a table and of the gateway that leads to it: `hbase://HOST:PORT/TABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HBaseAddress {
    /// Host and port of the Thrift2 gateway; a host of IPv6 stands in brackets.
    pub gateway: String,
    /// Table, with its namespace if that is not the default one: `web:seen`.
    pub table: String,
}

impl HBaseAddress {
    /// Reads the name of a table; `None` if the text does not begin like one.
    ///
    /// # Errors
    /// [`Error::BadName`] when host, port or table are missing, or the table has characters that HBase does not allow.
    pub fn parse(name: &str) -> Option<Result<Self, Error>> {
        let rest = name.strip_prefix(SCHEME)?;
        let bad = |reason: &str| Error::BadName { name: name.to_owned(), reason: reason.to_owned() };
        let Some((gateway, table)) = rest.split_once('/') else {
            return Some(Err(bad("expected hbase://HOST:PORT/TABLE")));
        };
        let port = gateway.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
            return Some(Err(bad("expected hbase://HOST:PORT/TABLE with the port of a Thrift2 gateway")));
        }
        let is_word = |word: &str| {
            !word.is_empty()
                && !word.starts_with(['.', '-'])
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        let is_table = match table.split_once(':') {
            Some((namespace, table)) => is_word(namespace) && is_word(table),
            None => is_word(table),
        };
        if !is_table {
            return Some(Err(bad(
                "a table is named by letters, digits, _, - and ., and may have NAMESPACE: before",
            )));
        }
        Some(Ok(HBaseAddress { gateway: gateway.to_owned(), table: table.to_owned() }))
    }
}

impl fmt::Display for HBaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.gateway, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_host_port_and_table() {
        for name in ["hbase://db:9090/seen", "hbase://[::1]:9090/web:seen_2.a-b"] {
            assert_eq!(HBaseAddress::parse(name).unwrap().unwrap().to_string(), name);
        }
        assert!(HBaseAddress::parse("seen").is_none() && HBaseAddress::parse("s3://a/b").is_none());
        for name in ["hbase://db:9090", "hbase://db/seen", "hbase://:9090/seen", "hbase://db:99999/seen"] {
            assert!(matches!(HBaseAddress::parse(name), Some(Err(Error::BadName { .. }))), "{name}");
        }
        for table in ["", "a/b", "-a", ".a", "a b", "表", ":a", "a:", "a:b:c"] {
            let name = format!("hbase://db:9090/{table}");
            assert!(matches!(HBaseAddress::parse(&name), Some(Err(Error::BadName { .. }))), "{name}");
        }
    }
}
