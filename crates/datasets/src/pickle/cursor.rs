//! The bytes of a pickle, taken from the front.

use super::defect::PickleDefect;

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.offset..]
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], PickleDefect> {
        let rest = self.rest();
        let taken = rest.get(..count).ok_or(PickleDefect::Truncated {
            needed: count,
            left: rest.len(),
        })?;
        self.offset += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleDefect> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("N bytes were taken"))
    }

    pub(super) fn byte(&mut self) -> Result<u8, PickleDefect> {
        self.array().map(|[byte]| byte)
    }

    /// The bytes before the next line feed, which is passed over.
    pub(super) fn line(&mut self) -> Result<&'a [u8], PickleDefect> {
        let rest = self.rest();
        let feed = rest.iter().position(|&byte| byte == b'\n');
        let line = self.take(feed.unwrap_or(rest.len()))?;
        self.take(1)?;
        Ok(line)
    }
}
