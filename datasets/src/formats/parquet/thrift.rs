//! The part of thrift's compact protocol that is needed to inspect footers and page headers before they are
//! decoded.
//!
//! Source: apache/thrift, doc/specs/thrift-compact-protocol.md.

/// Largest depth of nested structs and lists.
const MAX_DEPTH: usize = 32;

/// Reason why bytes could not be read as thrift.
#[derive(Debug, PartialEq)]
pub(super) enum Bad {
    /// The bytes end too early; there may be more.
    Short,
    /// The bytes are no thrift, or not what was expected.
    Invalid(&'static str),
}

/// Type of a field, or of the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
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

impl Kind {
    fn of(code: u8) -> Result<Kind, Bad> {
        Ok(match code {
            1 | 2 => Kind::Bool,
            3 => Kind::Byte,
            4..=6 => Kind::Integer,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 | 10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Uuid,
            _ => return Err(Bad::Invalid("a type that thrift does not have")),
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

    pub(super) fn byte(&mut self) -> Result<u8, Bad> {
        let byte = *self.bytes.get(self.at).ok_or(Bad::Short)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn pass(&mut self, count: u64) -> Result<(), Bad> {
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Bad::Short);
        }
        self.at += count as usize;
        Ok(())
    }

    /// Reads an unsigned number, seven bits to a byte.
    pub(super) fn varint(&mut self) -> Result<u64, Bad> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(Bad::Invalid("a number of more than 64 bits"));
            }
        }
    }

    /// Reads an integer of 16, 32 or 64 bits.
    pub(super) fn integer(&mut self) -> Result<i64, Bad> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Calls `field` with the number and the type of each field of a struct. A field for which it returns
    /// `false` was not read, and is skipped.
    pub(super) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i16, Kind) -> Result<bool, Bad>,
    ) -> Result<(), Bad> {
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
    fn field(&mut self, before: i16) -> Result<Option<(i16, Kind)>, Bad> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let number = match byte >> 4 {
            0 => self.integer()? as i16,
            delta => before.checked_add(i16::from(delta)).ok_or(Bad::Invalid("too many fields"))?,
        };
        Ok(Some((number, Kind::of(byte & 15)?)))
    }

    /// Reads the number and the type of a list's elements, which follow.
    pub(super) fn list(&mut self) -> Result<(u64, Kind), Bad> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        // Some writers give an empty list no type.
        let kind = if count == 0 { Kind::Bool } else { Kind::of(byte & 15)? };
        // Every element takes at least one byte.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Bad::Short);
        }
        Ok((count, kind))
    }

    /// Skips a struct.
    pub(super) fn skip_struct(&mut self) -> Result<(), Bad> {
        self.skip(Kind::Struct, 1, true)
    }

    /// Skips a value. With `of_field`, the value of a boolean is in the type of its field.
    fn skip(&mut self, kind: Kind, depth: usize, of_field: bool) -> Result<(), Bad> {
        if depth > MAX_DEPTH {
            return Err(Bad::Invalid("structs nested too deep"));
        }
        match kind {
            Kind::Bool if of_field => Ok(()),
            Kind::Bool | Kind::Byte => self.pass(1),
            Kind::Integer => self.varint().map(|_| ()),
            Kind::Double => self.pass(8),
            Kind::Uuid => self.pass(16),
            Kind::Binary => {
                let length = self.varint()?;
                self.pass(length)
            }
            Kind::List => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip(kind, depth + 1, false))
            }
            Kind::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 15)?);
                (0..count).try_for_each(|_| {
                    self.skip(key, depth + 1, false)?;
                    self.skip(value, depth + 1, false)
                })
            }
            Kind::Struct => {
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
        let kinds =
            [(1, Kind::Integer), (2, Kind::Bool), (3, Kind::List), (4, Kind::Map), (20, Kind::Binary)];
        assert_eq!(seen, kinds);
        assert_eq!(&bytes[thrift.position()..], b"rest");
        for length in 0..thrift.position() {
            assert_eq!(Thrift::new(&bytes[..length]).skip_struct(), Err(Bad::Short), "{length} bytes");
        }
    }

    #[test]
    fn no_length_is_believed_beyond_the_end() {
        let long_list = b"\x19\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(Thrift::new(long_list).skip_struct(), Err(Bad::Short));
        let long_binary = b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(Thrift::new(long_binary).skip_struct(), Err(Bad::Short));
        let deep = vec![0x1c; 1 << 20];
        assert_eq!(Thrift::new(&deep).skip_struct(), Err(Bad::Invalid("structs nested too deep")));
        assert_eq!(Thrift::new(&[0x15; 1]).skip_struct(), Err(Bad::Short));
        assert_eq!(Thrift::new(&[0xff; 20]).integer(), Err(Bad::Invalid("a number of more than 64 bits")));
    }
}
