//! The media types that a client accepts (RFC 9110 section 12.5.1).

use crate::exchange::Headers;

/// Which of the two media types of a response a client accepts. One without `Accept` accepts both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// What most clients send.
const COMMON: &str = "application/json, text/event-stream";

impl Accepts {
    pub(super) fn of(headers: &Headers) -> Self {
        let mut values = headers.all("Accept");
        if let (None | Some(COMMON), None) = (values.next(), values.next()) {
            return Self { json: true, events: true };
        }
        let accepts = |kind: &str, sub: &str| {
            let ranges = headers.all("Accept").flat_map(|value| value.split(','));
            // Of the ranges that cover the type the most specific counts.
            let best = ranges.filter_map(|range| rank(range, kind, sub)).max_by_key(|(rank, _)| *rank);
            best.is_some_and(|(_, is_wanted)| is_wanted)
        };
        Self { json: accepts("application", "json"), events: accepts("text", "event-stream") }
    }
}

/// How specific a media range is that covers a type, and whether it is wanted: a weight of zero
/// means that it is not.
fn rank(range: &str, kind: &str, sub: &str) -> Option<(u8, bool)> {
    let mut parts = range.split(';').map(str::trim);
    let (k, s) = parts.next().and_then(|range| range.split_once('/'))?;
    let rank = match (k, s) {
        ("*", "*") => 0,
        (k, "*") if k.eq_ignore_ascii_case(kind) => 1,
        (k, s) if k.eq_ignore_ascii_case(kind) && s.eq_ignore_ascii_case(sub) => 2,
        _ => return None,
    };
    let is_zero = |weight: &str| weight.starts_with('0') && weight.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut weights = parts.filter_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((rank, !weights.any(is_zero)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[&str]) -> (bool, bool) {
        let headers = fields.iter().fold(Headers::new(), |headers, value| headers.with("Accept", *value));
        let accepts = Accepts::of(&headers);
        (accepts.json, accepts.events)
    }

    // covers: HTTP-S-015, S3-08
    #[test]
    fn what_is_accepted_is_what_the_ranges_say() {
        assert_eq!(of(&[]), (true, true));
        assert_eq!(of(&["application/json, text/event-stream"]), (true, true));
        assert_eq!(of(&["application/json", "text/event-stream"]), (true, true));
        assert_eq!(of(&["Application/JSON;charset=utf-8"]), (true, false));
        assert_eq!(of(&["text/event-stream;q=0.5"]), (false, true));
        assert_eq!(of(&["*/*"]), (true, true));
        assert_eq!(of(&["text/*"]), (false, true));
        assert_eq!(of(&["application/*, text/event-stream;q=0"]), (true, false));
        assert_eq!(of(&["text/html"]), (false, false));
        assert_eq!(of(&["nonsense"]), (false, false));
        assert_eq!(of(&["text/event-stream;q=0.001"]), (false, true));
        assert_eq!(of(&["text/event-stream;q=0, */*"]), (true, false));
        assert_eq!(of(&["*/*;q=0, application/json"]), (true, false));
    }
}
