//! The part of thrift's compact protocol that is needed to inspect footers and page headers before they are
//! decoded.
//!
//! Source: apache/thrift, doc/specs/thrift-compact-protocol.md.

/// Largest depth of nested structs and lists.
const MAX_DEPTH: usize = 32;

/// Reason why bytes could not be read as thrift.
#[derive(Debug, PartialEq)]
pub(super) enum BadThrift {
    /// The bytes end too early; there may be more.
    Short,
    /// The bytes are no thrift, or not what was expected.
    Invalid(&'static str),
}

/// Type of a field, or of the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ThriftType {
    Bool,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl ThriftType {
    fn of(code: u8) -> Result<ThriftType, BadThrift> {
        Ok(match code {
            1 | 2 => ThriftType::Bool,
            3 => ThriftType::Byte,
            4..=6 => ThriftType::Integer,
            7 => ThriftType::Double,
            8 => ThriftType::Binary,
            9 | 10 => ThriftType::List,
            11 => ThriftType::Map,
            12 => ThriftType::Struct,
            13 => ThriftType::Uuid,
            _ => return Err(BadThrift::Invalid("a type that thrift does not have")),
        })
    }
}

/// Reader of thrift in some bytes. It allocates nothing, and trusts no length beyond their end.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Thrift { bytes, at: 0 }
    }

    /// Returns the number of bytes that have been read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn byte(&mut self) -> Result<u8, BadThrift> {
        let byte = *self.bytes.get(self.at).ok_or(BadThrift::Short)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn pass(&mut self, count: u64) -> Result<(), BadThrift> {
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(BadThrift::Short);
        }
        self.at += count as usize;
        Ok(())
    }

    /// Reads an unsigned number, seven bits to a byte.
    pub(super) fn varint(&mut self) -> Result<u64, BadThrift> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(BadThrift::Invalid("a number of more than 64 bits"));
            }
        }
    }

    /// Reads an integer of 16, 32 or 64 bits.
    pub(super) fn integer(&mut self) -> Result<i64, BadThrift> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Calls `field` with the number and the type of each field of a struct. A field for which it returns
    /// `false` was not read, and is skipped.
    pub(super) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i16, ThriftType) -> Result<bool, BadThrift>,
    ) -> Result<(), BadThrift> {
        let mut number = 0i16;
        while let Some((next, kind)) = self.field(number)? {
            number = next;
            if !field(self, number, kind)? {
                self.skip(kind, 1, true)?;
            }
        }
        Ok(())
    }

    /// Reads the number and the type of the next field, or `None` at the end of the struct.
    fn field(&mut self, before: i16) -> Result<Option<(i16, ThriftType)>, BadThrift> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let number = match byte >> 4 {
            0 => self.integer()? as i16,
            delta => before.checked_add(i16::from(delta)).ok_or(BadThrift::Invalid("too many fields"))?,
        };
        Ok(Some((number, ThriftType::of(byte & 15)?)))
    }

    /// Reads the number and the type of a list's elements, which follow.
    pub(super) fn list(&mut self) -> Result<(u64, ThriftType), BadThrift> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        // Some writers give an empty list no type.
        let kind = if count == 0 { ThriftType::Bool } else { ThriftType::of(byte & 15)? };
        // Every element takes at least one byte.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(BadThrift::Short);
        }
        Ok((count, kind))
    }

    /// Skips a struct.
    pub(super) fn skip_struct(&mut self) -> Result<(), BadThrift> {
        self.skip(ThriftType::Struct, 1, true)
    }

    /// Skips a value. With `of_field`, the value of a boolean is in the type of its field.
    fn skip(&mut self, kind: ThriftType, depth: usize, of_field: bool) -> Result<(), BadThrift> {
        if depth > MAX_DEPTH {
            return Err(BadThrift::Invalid("structs nested too deep"));
        }
        match kind {
            ThriftType::Bool if of_field => Ok(()),
            ThriftType::Bool | ThriftType::Byte => self.pass(1),
            ThriftType::Integer => self.varint().map(|_| ()),
            ThriftType::Double => self.pass(8),
            ThriftType::Uuid => self.pass(16),
            ThriftType::Binary => {
                let length = self.varint()?;
                self.pass(length)
            }
            ThriftType::List => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip(kind, depth + 1, false))
            }
            ThriftType::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let key = ThriftType::of(kinds >> 4)?;
                let value = ThriftType::of(kinds & 15)?;
                (0..count).try_for_each(|_| {
                    self.skip(key, depth + 1, false)?;
                    self.skip(value, depth + 1, false)
                })
            }
            ThriftType::Struct => {
                let mut number = 0;
                while let Some((next, kind)) = self.field(number)? {
                    number = next;
                    self.skip(kind, depth + 1, true)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_or_skipped_whatever_their_type() {
        // 1: i32 -3; 2: true; 3: list of two bytes; 4: map of one binary to a struct; 20: binary; stop
        let bytes = b"\x15\x05\x11\x19\x23\x07\x08\x1b\x01\x8c\x02ab\x00\x08\x28\x01x\x00rest";
        let mut thrift = Thrift::new(bytes);
        let mut seen = Vec::new();
        let read = thrift.fields(|thrift, number, kind| {
            seen.push((number, kind));
            Ok(number == 1 && thrift.integer()? == -3)
        });
        assert_eq!(read, Ok(()));
        let kinds = [
            (1, ThriftType::Integer),
            (2, ThriftType::Bool),
            (3, ThriftType::List),
            (4, ThriftType::Map),
            (20, ThriftType::Binary),
        ];
        assert_eq!(seen, kinds);
        assert_eq!(&bytes[thrift.position()..], b"rest");
        for length in 0..thrift.position() {
            assert_eq!(Thrift::new(&bytes[..length]).skip_struct(), Err(BadThrift::Short), "{length} bytes");
        }
    }

    #[test]
    fn no_length_is_believed_beyond_the_end() {
        let long_list = b"\x19\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(Thrift::new(long_list).skip_struct(), Err(BadThrift::Short));
        let long_binary = b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(Thrift::new(long_binary).skip_struct(), Err(BadThrift::Short));
        let deep = vec![0x1c; 1 << 20];
        assert_eq!(Thrift::new(&deep).skip_struct(), Err(BadThrift::Invalid("structs nested too deep")));
        assert_eq!(Thrift::new(&[0x15; 1]).skip_struct(), Err(BadThrift::Short));
        assert_eq!(
            Thrift::new(&[0xff; 20]).integer(),
            Err(BadThrift::Invalid("a number of more than 64 bits"))
        );
    }
}
