//! Texts of JSON that lie deeper than the members of the object, or in several of them.

use serde_json::Value;

/// Fields that together are a text, such as `meta.content`, `messages[].content` or `instruction,output`.
///
/// ```text
/// meta.content              the member content of the object meta
/// messages[].content        the members content of all elements of the list messages
/// instruction,output        both, one behind the other
/// ```
///
/// Parts of a text are joined by line breaks. Fields that are missing or null are passed over, as long as one is there.
pub(crate) struct JsonPaths<'f>(Vec<Vec<&'f str>>);

/// The text that an object has in such fields.
#[derive(Debug, PartialEq)]
pub(crate) enum PathText {
    Text(String),
    /// One or more are null, and no other has a text.
    Null,
    Missing,
}

impl<'f> JsonPaths<'f> {
    /// Reads the name of a field; `None` if it is a plain one.
    pub fn of(field: &'f str) -> Option<Self> {
        let is_plain = !field.contains([',', '.']) && !field.ends_with("[]");
        let path = |path: &'f str| path.split('.').collect();
        (!is_plain).then(|| JsonPaths(field.split(',').map(path).collect()))
    }

    /// Returns the text in an object.
    ///
    /// # Errors
    /// The path of a field that is no string.
    pub fn text(&self, object: &Value) -> Result<PathText, String> {
        let mut parts = Vec::new();
        let mut nulls = 0;
        for path in &self.0 {
            take(object, path, (&mut parts, &mut nulls)).map_err(|()| path.join("."))?;
        }
        Ok(match (parts.is_empty(), nulls) {
            (false, _) => PathText::Text(parts.join("\n")),
            (true, 0) => PathText::Missing,
            (true, _) => PathText::Null,
        })
    }
}

/// Adds the strings that a path leads to, and counts the nulls.
fn take<'v>(
    value: &'v Value,
    path: &[&str],
    (parts, nulls): (&mut Vec<&'v str>, &mut u64),
) -> Result<(), ()> {
    let Some((name, rest)) = path.split_first() else {
        return match value {
            Value::Null => {
                *nulls += 1;
                Ok(())
            }
            Value::String(text) => {
                parts.push(text);
                Ok(())
            }
            _ => Err(()),
        };
    };
    let (name, is_list) = name.strip_suffix("[]").map_or((*name, false), |name| (name, true));
    match (value.get(name), is_list) {
        (None, _) => Ok(()),
        (Some(Value::Null), _) => {
            *nulls += 1;
            Ok(())
        }
        (Some(Value::Array(list)), true) => {
            list.iter().try_for_each(|value| take(value, rest, (&mut *parts, &mut *nulls)))
        }
        (Some(_), true) => Err(()),
        (Some(value), false) => take(value, rest, (parts, nulls)),
    }
}

/// Returns a line of JSON as parsers read it, if it has what they refuse and other programs write: `NaN` and `Infinity`, which become null,
/// and, with `replace`, halves of surrogate pairs, which become U+FFFD. Says too whether there were such halves.
pub(crate) fn mended(line: &str, replace: bool) -> Option<(String, bool)> {
    let bytes = line.as_bytes();
    let mut mended = String::new();
    let mut copied = 0;
    let (mut at, mut quoted, mut replaced) = (0, false, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => {
                let is_low = |unit: u16| (0xdc00..0xe000).contains(&unit);
                match unit(bytes, at).filter(|unit| (0xd800..0xe000).contains(unit)) {
                    Some(high) if !is_low(high) && unit(bytes, at + 6).is_some_and(is_low) => at += 11,
                    Some(_) if replace => {
                        mended += &line[copied..at];
                        mended += "\\ufffd";
                        (copied, replaced) = (at + 6, true);
                        at += 5;
                    }
                    _ => at += 1,
                }
            }
            b'N' | b'I' | b'-' if !quoted => {
                let words = ["NaN", "Infinity", "-Infinity"];
                if let Some(word) = words.iter().find(|word| rest.starts_with(word.as_bytes())) {
                    mended += &line[copied..at];
                    mended += "null";
                    copied = at + word.len();
                    at = copied - 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    (copied > 0).then(|| (mended + &line[copied..], replaced))
}

/// Returns the unit of UTF-16 that an escape at a place stands for.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_into_objects_and_lists_and_several_fields_are_joined() {
        let object = json!({
            "meta": {"content": "甲", "n": 1}, "messages": [{"content": "一"}, {"role": "x"}, {"content": "二"}],
            "instruction": "问", "output": "答", "input": null, "tags": ["a", "b"]
        });
        for (field, text) in [
            ("meta.content", Ok(Some("甲"))),
            ("messages[].content", Ok(Some("一\n二"))),
            ("instruction,output", Ok(Some("问\n答"))),
            ("instruction,input,none,output", Ok(Some("问\n答"))),
            ("tags[]", Ok(Some("a\nb"))),
            ("meta.none", Ok(None)),
            ("none.content", Ok(None)),
            ("meta.n", Err("meta.n")),
            ("messages.content", Ok(None)),
            ("meta[].content", Err("meta[].content")),
        ] {
            let found = JsonPaths::of(field).unwrap().text(&object);
            let text =
                text.map(|text| text.map_or(PathText::Missing, |text| PathText::Text(text.to_owned())));
            assert_eq!(found, text.map_err(str::to_owned), "{field}");
        }
        assert_eq!(JsonPaths::of("input,none").unwrap().text(&object), Ok(PathText::Null));
        assert!(JsonPaths::of("text").is_none());
    }

    #[test]
    fn what_other_programs_write_is_mended() {
        for (line, replace, expected) in [
            (r#"{"a":NaN,"b":-Infinity,"c":Infinity}"#, false, Some(r#"{"a":null,"b":null,"c":null}"#)),
            (r#"{"a":"NaN Infinity"}"#, true, None),
            (r#"{"a":"\ud83d x"}"#, true, Some(r#"{"a":"\ufffd x"}"#)),
            (r#"{"a":"\ud83d x"}"#, false, None),
            (r#"{"a":"\ud83d\ude00"}"#, true, None),
            (r#"{"a":"\ude00\ud83d"}"#, true, Some(r#"{"a":"\ufffd\ufffd"}"#)),
            (r#"{"a":"\\ud83d"}"#, true, None),
            (r#"{"a":"\"","b":NaN}"#, false, Some(r#"{"a":"\"","b":null}"#)),
            ("{\"a\":\"\\", true, None),
            ("{\"a\":\"\\ud8", true, None),
        ] {
            assert_eq!(mended(line, replace).map(|mended| mended.0).as_deref(), expected, "{line}");
        }
    }
}
