//! The names of nodes, sessions and requests in a store.

use crate::auth::Principal;
use crate::rpc::DecodeError;
use alloc::format;
use core::fmt;
use hmac_sha256::Hash as Sha256;

/// A node between two joins: 16 random bytes. A node that joins again is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub [u8; 16]);

/// The SHA-256 of the id of a session, by which a store finds the session. Who reads the store
/// learns no id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionDigest(pub [u8; 32]);

/// The SHA-256 of the id of a request, as its JSON text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestDigest(pub [u8; 32]);

/// The SHA-256 of the id of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskDigest(pub [u8; 32]);

/// The SHA-256 of the name of a principal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalDigest(pub [u8; 32]);

/// The number of a node among the members of a store, below 2^20.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeTag(pub u32);

impl Incarnation {
    /// Returns the number by which other nodes reach this one: 20 of its bits. No two members of a
    /// store have the same.
    pub const fn tag(self) -> NodeTag {
        let [a, b, c, ..] = self.0;
        NodeTag(u32::from_be_bytes([0, a, b, c]) >> 4)
    }

    /// Returns this node with the tag of another one.
    pub(crate) const fn with_tag_of(self, other: Self) -> Self {
        let mut bytes = self.0;
        (bytes[0], bytes[1]) = (other.0[0], other.0[1]);
        bytes[2] = other.0[2] & 0xf0 | bytes[2] & 0x0f;
        Self(bytes)
    }
}

impl RequestDigest {
    /// Returns the digest of the id of a request, as its JSON text.
    pub fn of(id: &[u8]) -> Self {
        Self(Sha256::hash(id))
    }
}

impl TaskDigest {
    /// Returns the digest of the id of a task.
    pub fn of(id: &str) -> Self {
        Self(Sha256::hash(id.as_bytes()))
    }
}

impl PrincipalDigest {
    /// Returns the digest of the name of a principal.
    pub fn of(principal: &Principal) -> Self {
        Self(Sha256::hash(principal.as_str().as_bytes()))
    }
}

/// Reads hexadecimal digits, two for each byte.
fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let pair = core::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

/// The text of a name: hexadecimal digits, two for each byte.
macro_rules! hexadecimal {
    ($($name:ident)+) => {$(
        impl $name {
            /// Reads what `Display` writes.
            ///
            /// # Errors
            /// [`DecodeError`] for anything else.
            pub fn parse(text: &str) -> Result<Self, DecodeError> {
                read(text).map(Self).ok_or_else(|| DecodeError::new(format!("no {}", stringify!($name))))
            }
        }

        impl fmt::Display for $name {
            /// Writes two hexadecimal digits for each byte.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    )+};
}

hexadecimal!(Incarnation SessionDigest RequestDigest TaskDigest PrincipalDigest);

impl fmt::Display for NodeTag {
    /// Writes 5 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:05x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_read_as_they_were_written() {
        let name = Incarnation([0xa1; 16]);
        assert_eq!((name.to_string(), Incarnation::parse(&name.to_string()).unwrap()), ("a1".repeat(16), name));
        let text = "0f".repeat(32);
        assert_eq!(SessionDigest::parse(&text).unwrap(), SessionDigest([15; 32]));
        for bad in ["", "0f", &"0f".repeat(31), &"0f".repeat(33), &"0g".repeat(32), &"+f".repeat(32), &"ü".repeat(32)]
        {
            assert!(SessionDigest::parse(bad).is_err(), "{bad}");
        }
    }
}
