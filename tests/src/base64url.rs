//! Base64 for URLs, without padding (RFC 4648 section 5), written down once more: what reads tokens
//! beside the engine must not share its code.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes bytes.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let digit = |bits: u32, shift: u32| char::from(ALPHABET[(bits >> shift) as usize & 63]);
    let group = |group: &[u8]| {
        let at = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        [18, 12, 6, 0].map(|shift| digit(bits, shift)).into_iter().take(group.len() + 1)
    };
    bytes.as_ref().chunks(3).flat_map(group).collect()
}

/// Decodes a text. `None` if it is not what [`encode`] returns for some bytes.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> =
        text.bytes().map(|byte| ALPHABET.iter().position(|known| *known == byte).map(|at| at as u32)).collect();
    let bytes: Vec<u8> = digits?
        .chunks(4)
        .flat_map(|group| {
            let bits = group.iter().zip([18, 12, 6, 0]).fold(0, |bits, (digit, shift)| bits | digit << shift);
            [bits >> 16, bits >> 8, bits].map(|byte| byte as u8).into_iter().take(group.len().saturating_sub(1))
        })
        .collect();
    (encode(&bytes) == text).then_some(bytes)
}
