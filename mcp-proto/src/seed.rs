//! Random-looking values for an engine (ids, keys, jitter), derived from 32 bytes with HMAC-SHA-256
//! in counter mode. An engine has no other source of randomness. Two engines must not share a seed.

use hmac_sha256::HMAC;

/// A deterministic generator. The same seed gives the same values, so a run can be replayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed {
    key: [u8; 32],
    counter: u64,
}

impl Seed {
    /// Creates a generator from 32 bytes. A driver takes them from the random source of its
    /// operating system.
    pub const fn new(seed: [u8; 32]) -> Self {
        Self { key: seed, counter: 0 }
    }

    /// Returns a key for one purpose. It does not depend on the values drawn so far.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut mac = HMAC::new(self.key);
        mac.update(b"derive\0");
        mac.update(purpose.as_bytes());
        mac.finalize()
    }

    /// Returns the next 32 bytes.
    pub fn next_bytes(&mut self) -> [u8; 32] {
        let mut mac = HMAC::new(self.key);
        mac.update(b"draw\0");
        mac.update(self.counter.to_be_bytes());
        self.counter += 1;
        mac.finalize()
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let bytes = self.next_bytes();
        u64::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
    }
}

impl core::fmt::Debug for Seed {
    /// Never shows the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Seed").field("drawn", &self.counter).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn values_depend_only_on_seed_and_position() {
        let (mut a, mut b) = (Seed::new([1; 32]), Seed::new([1; 32]));
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(a.next_u64(), Seed::new([1; 32]).next_u64());
        assert_ne!(Seed::new([2; 32]).next_u64(), Seed::new([1; 32]).next_u64());
        assert_eq!(a.derive("x"), Seed::new([1; 32]).derive("x"));
        assert_ne!(a.derive("x"), a.derive("y"));
    }

    #[test]
    fn debug_does_not_show_the_key() {
        assert_eq!(format!("{:?}", Seed::new([7; 32])), "Seed { drawn: 0, .. }");
    }
}
