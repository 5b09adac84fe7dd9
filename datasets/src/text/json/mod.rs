//! Extraction of the id, the text and the priority from a line of JSON, without building the rest of it.

pub(crate) mod paths;
pub(crate) mod values;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use operators::{Priority, Reject};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use self::paths::{JsonPaths, PathText, mended};
use crate::{BadText, NullText, Reading, no_number};

/// Largest depth of objects and lists. Readers of our output have the same limit.
const MAX_DEPTH: usize = 128;

/// Document of a line.
pub(crate) struct JsonDocument<'l> {
    /// Id, if it has one.
    pub id: Option<Cow<'l, str>>,
    pub text: Cow<'l, str>,
    pub priority: Priority,
    /// Whether halves of surrogate pairs were read as U+FFFD.
    pub replaced: bool,
}

/// Reason why a line holds no document.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The object lacks this field.
    NoField(String),
    /// Any other reason.
    Bad(String),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Refusal::Bad(reason)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoField(field) => write!(f, "no field \"{field}\""),
            Refusal::Bad(reason) => f.write_str(reason),
        }
    }
}

/// Extracts the document of a line. A line that has what [`mended`] mends is read so.
///
/// Strings without escapes are borrowed from the line. If a name occurs twice, the last value counts.
pub(crate) fn document<'l>(line: &'l str, reading: &Reading) -> Result<JsonDocument<'l>, Refusal> {
    let refusal = match document_of(line, reading) {
        Err(refusal) => refusal,
        found => return found,
    };
    let replaces = reading.bad_text == BadText::Replace;
    let Some((mended, replaced)) = mended(line, replaces) else { return Err(refusal) };
    let JsonDocument { id, text, priority, .. } = document_of(&mended, reading)?;
    let owned = |text: Cow<str>| Cow::Owned(text.into_owned());
    Ok(JsonDocument { id: id.map(owned), text: owned(text), priority, replaced })
}

fn document_of<'l>(line: &'l str, reading: &Reading) -> Result<JsonDocument<'l>, Refusal> {
    let text = line.trim_ascii_end();
    match text.trim_ascii_start().chars().next() {
        Some('{') => {}
        Some('[') => {
            return Err("a JSON array, where each line must be a JSON object: --format json-array reads it"
                .to_owned()
                .into());
        }
        _ => return Err("not a JSON object at byte 0 of the line".to_owned().into()),
    }
    if too_deep(text) {
        return Err(format!("nested deeper than {MAX_DEPTH}").into());
    }
    let (id_field, id_required) = reading.id();
    let priority = reading.priority.as_deref();
    let wanted = Wanted { id: id_field, text: reading.text(), reading, priority };
    let mut json = serde_json::Deserializer::from_str(text);
    let found = json.deserialize_map(wanted).and_then(|found| json.end().map(|()| found));
    let found = found.map_err(|error| reason(&error))?;
    let text = match (found.text, JsonPaths::of(reading.text())) {
        (Some(text), _) => text,
        (None, None) => return Err(Refusal::NoField(reading.text().to_owned())),
        (None, Some(paths)) => {
            let object: serde_json::Value = serde_json::from_str(text).map_err(|error| reason(&error))?;
            let joined = paths.text(&object);
            let joined = joined.map_err(|path| format!("expected a string in the field \"{path}\""))?;
            match (joined, reading.null_text) {
                (PathText::Text(text), _) => Cow::Owned(text),
                (PathText::Null, NullText::Keep) => Cow::Borrowed(""),
                (PathText::Null, NullText::Drop) => return Err(Reject::DROPPED.to_owned().into()),
                (PathText::Null, NullText::Reject) => return Err(null_in(reading.text()).into()),
                (PathText::Missing, _) => return Err(Refusal::NoField(reading.text().to_owned())),
            }
        }
    };
    // Returns the value of a field, which may be that of the text; `None` if it is neither a string nor a number.
    let string_or_number = |field: &str, value: Option<&'l RawValue>| match value.map(RawValue::get) {
        Some(value) if value.starts_with('"') && !value.contains('\\') => {
            Ok(Some(Cow::Borrowed(&value[1..value.len() - 1])))
        }
        Some(value) if value.starts_with('"') => {
            let mut json = serde_json::Deserializer::from_str(value);
            JsonText::of(field).deserialize(&mut json).map(Some).map_err(|error| reason(&error).into())
        }
        Some(value) if value.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            Ok(Some(Cow::Borrowed(value)))
        }
        Some(_) => Ok(None),
        None if field == reading.text() => Ok(Some(text.clone())),
        None => Err(Refusal::NoField(field.to_owned())),
    };
    let id = match (id_required, found.id) {
        (false, None) => None,
        (_, id) => string_or_number(id_field, id)?,
    };
    if id.is_none() && id_required {
        return Err(format!("no string or number in the field \"{id_field}\"").into());
    }
    let priority = match &reading.priority {
        None => Priority::default(),
        Some(field) => {
            let number = string_or_number(field, found.priority)?;
            number.and_then(|number| Priority::of_text(&number)).ok_or_else(|| no_number(field))?
        }
    };
    Ok(JsonDocument { id, text, priority, replaced: false })
}

/// Returns the names of an object's members that are `wanted`. If `object` is no object, there are none.
pub(crate) fn names(object: &str, wanted: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut json = serde_json::Deserializer::from_str(object);
    json.deserialize_map(FieldNames(wanted)).unwrap_or_default()
}

/// Reader of the names of an object's members.
struct FieldNames<W>(W);

impl<'l, W: FnMut(&str) -> bool> Visitor<'l> for FieldNames<W> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'l>>(mut self, mut members: M) -> Result<Vec<String>, M::Error> {
        let mut names = Vec::new();
        while let Some((name, IgnoredAny)) = members.next_entry::<Cow<str>, _>()? {
            if self.0(&name) {
                names.push(name.into_owned());
            }
        }
        Ok(names)
    }
}

/// Returns the place of the value of a field in an object, and the string that it is. If the name occurs twice, the
/// last value counts.
pub(crate) fn text_place(object: &str, field: &str) -> Option<(Range<usize>, String)> {
    let mut json = serde_json::Deserializer::from_str(object);
    let value = json.deserialize_map(LastValue(field)).ok()??.get();
    // The value is borrowed from the object, so the distance of the two is its offset.
    let start = (value.as_ptr() as usize).checked_sub(object.as_ptr() as usize)?;
    Some((start..start + value.len(), serde_json::from_str(value).ok()?))
}

/// Reader of the last value of a member.
struct LastValue<'f>(&'f str);

impl<'l> Visitor<'l> for LastValue<'_> {
    type Value = Option<&'l RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'l>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some((name, value)) = members.next_entry::<Cow<str>, &RawValue>()? {
            if name == self.0 {
                found = Some(value);
            }
        }
        Ok(found)
    }
}

/// Writes a string as a value of JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes the characters of `json` beyond ASCII as escapes, for lines in an encoding that may lack them.
pub(crate) fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() * 2);
    for c in json.chars() {
        match c.is_ascii() {
            true => escaped.push(c),
            // Such characters occur only in strings.
            false => escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    escaped
}

/// Returns the reason why a record with a null in the place of its text is rejected.
fn null_in(field: &str) -> String {
    format!("null in the field \"{field}\", which --null-text keep takes for an empty text")
}

/// Returns the parser's message with the position in the line. The parser counts bytes from 1 in a line that
/// is always 1.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    if let Some((_, field)) = message.split_once("invalid type: null, expected a string in ") {
        let field = field.split(" at line ").next().unwrap_or_default();
        return null_in(field.trim_start_matches("the field ").trim_matches('"'));
    }
    let message = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    format!("{message} at byte {} of the line", error.column().saturating_sub(1))
}

/// Returns whether the nesting is too deep. The parser skips nested values without recursion, so it sets no
/// limit of its own.
fn too_deep(json: &str) -> bool {
    if memchr::memchr2_iter(b'[', b'{', json.as_bytes()).nth(MAX_DEPTH).is_none() {
        return false; // nearly every line returns here; this count includes brackets in strings
    }
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Reader of an object, which takes up to three of its members.
struct Wanted<'f> {
    id: &'f str,
    text: &'f str,
    reading: &'f Reading,
    priority: Option<&'f str>,
}

#[derive(Default)]
struct JsonFound<'l> {
    id: Option<&'l RawValue>,
    text: Option<Cow<'l, str>>,
    priority: Option<&'l RawValue>,
}

impl<'l> Visitor<'l> for Wanted<'_> {
    type Value = JsonFound<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'l>>(self, mut members: M) -> Result<JsonFound<'l>, M::Error> {
        let mut found = JsonFound::default();
        while let Some(name) = members.next_key_seed(JsonText::of("its name"))? {
            if name == self.text && self.reading.numbers {
                let value = members.next_value::<&'l RawValue>()?.get();
                let is_number = value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
                let string =
                    || JsonText::of(self.text).deserialize(&mut serde_json::Deserializer::from_str(value));
                found.text = Some(match is_number {
                    true => Cow::Borrowed(value),
                    false => string().map_err(M::Error::custom)?,
                });
            } else if name == self.text {
                let null = self.reading.null_text;
                found.text = Some(members.next_value_seed(JsonText { field: self.text, null })?);
            } else if name == self.id {
                found.id = Some(members.next_value()?);
                if self.priority == Some(self.id) {
                    found.priority = found.id;
                }
            } else if self.priority.is_some_and(|priority| name == priority) {
                found.priority = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Reader of a string: the name of a member, or the value of the named field. A string without escapes is
/// borrowed.
struct JsonText<'f> {
    field: &'f str,
    /// Treatment of a null, which is an empty string where it is kept.
    null: NullText,
}

impl<'f> JsonText<'f> {
    fn of(field: &'f str) -> Self {
        JsonText { field, null: NullText::Reject }
    }
}

impl<'l> DeserializeSeed<'l> for JsonText<'_> {
    type Value = Cow<'l, str>;

    fn deserialize<D: Deserializer<'l>>(self, json: D) -> Result<Cow<'l, str>, D::Error> {
        if self.null == NullText::Reject { json.deserialize_str(self) } else { json.deserialize_any(self) }
    }
}

impl<'l> Visitor<'l> for JsonText<'_> {
    type Value = Cow<'l, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let null = if self.null == NullText::Reject { "" } else { " or null" };
        write!(f, "a string{null} in the field \"{}\"", self.field)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Cow<'l, str>, E> {
        match self.null {
            NullText::Keep => Ok(Cow::Borrowed("")),
            NullText::Drop => Err(E::custom(Reject::DROPPED)),
            NullText::Reject => Err(E::invalid_type(Unexpected::Unit, &self)),
        }
    }

    fn visit_borrowed_str<E>(self, text: &'l str) -> Result<Cow<'l, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'l, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
