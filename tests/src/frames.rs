//! Frames of a WebSocket (RFC 6455 section 5.2), valid or not: the first byte is given as it is on
//! the wire.

pub(crate) const TEXT: u8 = 0x81;
/// A text that is continued.
pub(crate) const FRAGMENT: u8 = 0x01;
/// A part of a message, but not the last one.
pub(crate) const MORE: u8 = 0x00;
/// The last part of a message.
pub(crate) const LAST: u8 = 0x80;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8a;

/// The codes of a `Close`.
pub(crate) const NORMAL: u16 = 1000;
pub(crate) const PROTOCOL: u16 = 1002;
pub(crate) const POLICY: u16 = 1008;
pub(crate) const TOO_BIG: u16 = 1009;

/// The largest payload of a ping.
pub(crate) const LONGEST_PING: usize = 125;

/// Returns a frame of a server.
pub(crate) fn plain(first: u8, payload: &[u8]) -> Vec<u8> {
    frame(first, None, payload)
}

/// Returns a frame of a client. Its mask is zero, so the payload is legible.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    frame(first, Some([0; 4]), payload)
}

/// Returns a frame, with this mask.
pub(crate) fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let length = payload.len();
    let mut out = match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..=125), _) => vec![first, bit | short],
        (_, Ok(medium)) => [&[first, bit | 126][..], &medium.to_be_bytes()].concat(),
        _ => [&[first, bit | 127][..], &(length as u64).to_be_bytes()].concat(),
    };
    out.extend(mask.into_iter().flatten());
    out.extend(apply(mask.unwrap_or_default(), payload));
    out
}

/// Reads a frame of either side: its first byte, and its payload without the mask.
pub(crate) fn read<E>(mut take: impl FnMut(usize) -> Result<Vec<u8>, E>) -> Result<(u8, Vec<u8>), E> {
    let head = take(2)?;
    let length = match head[1] & 0x7f {
        126 => number(&take(2)?),
        127 => number(&take(8)?),
        short => short.into(),
    };
    let mask = if head[1] & 0x80 == 0 { Vec::new() } else { take(4)? };
    let payload = take(length)?;
    Ok((head[0], apply(mask.first_chunk().copied().unwrap_or_default(), &payload).collect()))
}

fn apply(mask: [u8; 4], payload: &[u8]) -> impl Iterator<Item = u8> {
    payload.iter().zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask)
}

/// Returns the code of a `Close` with this payload.
pub(crate) fn code(payload: &[u8]) -> Option<u16> {
    payload.first_chunk().map(|code| u16::from_be_bytes(*code))
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |all, byte| all << 8 | usize::from(*byte))
}
