//! The clock, a pipe and randomness, as the standard library has them.

use crate::target::{Reader, Writer};
use mcp_proto::Instant;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Read};

/// The clock of one engine. Its origin is the moment it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::new(self.0.elapsed())
    }
}

/// A pipe within this process.
pub(crate) fn pipe() -> io::Result<(Reader, Writer)> {
    let (reader, writer) = io::pipe()?;
    Ok((Box::new(reader), Box::new(writer)))
}

/// 32 bytes that nobody can guess.
pub(crate) fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    if random.is_err() {
        // Without that device (Windows, a bare chroot): the standard library keys each `RandomState` from the same source.
        for (n, part) in seed.chunks_mut(8).enumerate() {
            part.copy_from_slice(&RandomState::new().hash_one(n).to_ne_bytes());
        }
    }
    seed
}
