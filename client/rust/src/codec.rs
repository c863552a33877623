//! Thrift's binary protocol: values, and what of them can be skipped. Every length is compared with the bytes that are
//! there before memory is allocated for it.

pub(crate) const DEPTH_MAX: usize = 32;

pub(crate) const STOP: u8 = 0;
pub(crate) const BOOL: u8 = 2;
pub(crate) const BYTE: u8 = 3;
pub(crate) const DOUBLE: u8 = 4;
pub(crate) const I16: u8 = 6;
pub(crate) const I32: u8 = 8;
pub(crate) const I64: u8 = 10;
pub(crate) const STRING: u8 = 11;
pub(crate) const STRUCT: u8 = 12;
pub(crate) const MAP: u8 = 13;
pub(crate) const SET: u8 = 14;
pub(crate) const LIST: u8 = 15;

/// A frame that does not follow the protocol, and why.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

pub(crate) type Parsed<T> = Result<T, Malformed>;

pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(text.as_bytes());
}

pub(crate) fn write_field(kind: u8, id: i16, value: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(id.to_be_bytes());
    out.extend(value);
}

pub(crate) fn write_text(id: i16, text: &str, out: &mut Vec<u8>) {
    write_field(STRING, id, &[], out);
    write_string(text, out);
}

/// Reads values from the front of a frame.
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        if count > self.rest.len() {
            return Err(Malformed("a value is longer than its frame"));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self) -> Parsed<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn i32(&mut self) -> Parsed<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Parsed<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn size(&mut self) -> Parsed<usize> {
        usize::try_from(self.i32()?).map_err(|_| Malformed("a length is negative"))
    }

    pub(crate) fn bytes(&mut self) -> Parsed<&'a [u8]> {
        let size = self.size()?;
        self.take(size)
    }

    pub(crate) fn string(&mut self) -> Parsed<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Reads a container's number of elements, which the frame must be able to hold.
    pub(crate) fn count(&mut self, element_bytes: usize) -> Parsed<usize> {
        let count = self.size()?;
        if count > self.rest.len() / element_bytes.max(1) {
            return Err(Malformed("a list has more elements than its frame can hold"));
        }
        Ok(count)
    }

    /// Calls `field` with the id and type of each field of a struct. It must read or skip the value.
    pub(crate) fn fields(&mut self, mut field: impl FnMut(&mut Self, i16, u8) -> Parsed<()>) -> Parsed<()> {
        loop {
            let kind = self.u8()?;
            if kind == STOP {
                return Ok(());
            }
            let id = self.array().map(i16::from_be_bytes)?;
            field(self, id, kind)?;
        }
    }

    pub(crate) fn skip(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        if depth > DEPTH_MAX {
            return Err(Malformed("its values are nested too deeply"));
        }
        match kind {
            STRING => self.bytes().map(drop),
            STRUCT => self.fields(|reader, _, kind| reader.skip(kind, depth + 1)),
            LIST | SET => {
                let kind = self.u8()?;
                let count = self.count(least_bytes(kind)?)?;
                (0..count).try_for_each(|_| self.skip(kind, depth + 1))
            }
            MAP => {
                let (key, value) = (self.u8()?, self.u8()?);
                let count = self.size()?;
                if count == 0 {
                    return Ok(()); // the types of an empty map may be 0
                }
                if count > self.rest.len() / (least_bytes(key)? + least_bytes(value)?) {
                    return Err(Malformed("a map has more elements than its frame can hold"));
                }
                (0..count).try_for_each(|_| {
                    self.skip(key, depth + 1)?;
                    self.skip(value, depth + 1)
                })
            }
            _ => self.take(least_bytes(kind)?).map(drop),
        }
    }

    /// Reads a list of structs.
    pub(crate) fn structs<T>(&mut self, mut element: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if self.u8()? != STRUCT {
            return Err(Malformed("a list has elements of another type"));
        }
        let count = self.count(1)?;
        // An element can take more memory than bytes of the frame, so memory grows with what was read.
        let mut elements = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(elements)
    }
}

/// Returns the least number of bytes that a value of the type takes.
pub(crate) fn least_bytes(kind: u8) -> Parsed<usize> {
    Ok(match kind {
        BOOL | BYTE | STRUCT => 1,
        I16 => 2,
        I32 | STRING => 4,
        LIST | SET => 5,
        MAP => 6,
        DOUBLE | I64 => 8,
        _ => return Err(Malformed("it has a value of an unknown type")),
    })
}
