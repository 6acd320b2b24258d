//! Clock, pipes and randomness of the standard library.

use crate::ends::{Reader, Writer};
use mcp_proto::Instant;
use std::io;

/// The clock of one engine. Its origin is the time of its creation.
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

/// Creates a pipe within this process.
pub(crate) fn pipe() -> io::Result<(Reader, Writer)> {
    let (reader, writer) = io::pipe()?;
    Ok((Box::new(reader), Box::new(writer)))
}

/// Returns 32 bytes from the random source of the operating system. Keys and session ids are
/// derived from them, so there is no fallback.
///
/// # Errors
/// The system provides no random bytes.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    seed_from(getrandom::fill)
}

fn seed_from<E: Into<io::Error>>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fill(&mut seed).map_err(Into::into)?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S3-16, SHTTP-S-047
    #[test]
    fn seed_is_random_or_an_error() {
        assert_ne!(seed().expect("a seed"), seed().expect("a seed"));
        let failed = seed_from(|half: &mut [u8]| {
            half[..16].fill(7);
            Err(io::Error::other("no entropy"))
        });
        assert_eq!(failed.expect_err("no seed").to_string(), "no entropy");
    }
}
