//! Small texts whose last line is the hash of all before it.

/// Adds the line with the BLAKE3 hash to a text.
pub fn seal(mut text: Vec<u8>) -> Vec<u8> {
    let hash = blake3::hash(&text).to_hex();
    text.push(b'\n');
    text.extend(hash.as_bytes());
    text.push(b'\n');
    text
}

/// Returns what [`seal`] was given; `None` if the hash is wrong.
pub fn unsealed(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_suffix(b"\n")?;
    let line = text.iter().rposition(|&byte| byte == b'\n')?;
    (blake3::hash(&text[..line]).to_hex().as_bytes() == &text[line + 1..]).then_some(&text[..line])
}
