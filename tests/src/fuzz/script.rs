//! Bytes as a script: each step reads its parameters from the front. After the end all values are
//! zero, so that any bytes are a script.

use bytes::Bytes;

/// The rest of the script.
#[derive(Clone, Debug)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// A script at its beginning.
    pub const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// Returns whether the script is at its end.
    pub const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// One of these.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// Returns the number of bytes that the next byte states, at most all that are left.
    pub fn chunk(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte());
        self.split(count)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.split(self.0.len())
    }

    fn split(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Cuts bytes into pieces whose sizes a few bits choose: single bytes, a few bytes, or long ones.
pub fn pieces(bytes: &[u8], mut choice: u64) -> Vec<Bytes> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        choice = choice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let most = [1, 3, 17, 4096][(choice >> 60) as usize % 4];
        let (piece, after) = rest.split_at((1 + (choice >> 32) as usize % most).min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = after;
    }
    pieces
}
