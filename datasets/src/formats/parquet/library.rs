//! Calls of the parquet library.

use parquet::errors::ParquetError;

use crate::Error;

/// Calls the library, and catches its panics. It panics on some damaged pages: a page header that names
/// another encoding, or levels and run lengths that do not fit (parquet 60.1, found by changing single bits
/// of small files).
pub(super) fn decode<T, E: std::error::Error>(call: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    cluster::catch(call)?.map_err(|error| text(&error))
}

/// Returns the library's message without the names of the layers that it came through.
pub(super) fn text(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let mut text = text.as_str();
    while let Some(inner) = ["Parquet argument error: ", "Parquet error: ", "EOF: ", "External: "]
        .iter()
        .find_map(|layer| text.strip_prefix(layer))
    {
        text = inner;
    }
    text.to_owned()
}

/// Converts an error of the parquet library while a part is written: to the store's own error if it came from
/// there.
pub(super) fn writing(error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(error) => std::io::Error::other(error),
        },
        error => std::io::Error::other(error),
    };
    Error::writing("a part in parquet", error)
}
