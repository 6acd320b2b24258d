//! Trace context (W3C Trace Context, W3C Baggage): the members of `_meta` that make the spans of a
//! client and of a server parts of one trace.

use crate::rpc::Object;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

/// The longest text that is passed on, in bytes, and the number of its members: what everyone has
/// to pass on at least (W3C Baggage, limits; Trace Context, `tracestate` limits).
const MOST_STATE: usize = 512;
const MOST_MEMBERS: usize = 32;
const MOST_BAGGAGE: usize = 8192;
const MOST_ITEMS: usize = 64;

/// The place of a request in a trace: the bare members `traceparent`, `tracestate` and `baggage` of
/// `_meta` (`META-B-020`).
///
/// [`Call::trace`](crate::Call::trace) sends it, and [`Cx::trace`](crate::Cx::trace) returns what
/// came. What breaks the syntax of W3C is dropped: with the `traceparent` all of it, else the one
/// member.
///
/// ```
/// use mcp_proto::TraceContext;
///
/// let of_the_server = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let trace = TraceContext::parse(of_the_server).expect("a valid traceparent");
/// assert!(trace.is_sampled());
/// // The span that a program begins, and sends on.
/// let child = trace.child([0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]).expect("not all zero");
/// assert_eq!(child.traceparent(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    parent_id: [u8; 8],
    flags: u8,
    state: Option<String>,
    baggage: Option<String>,
}

impl TraceContext {
    /// Creates the context of a span. `None` if an id is all zero, which is no id.
    pub fn new(trace_id: [u8; 16], parent_id: [u8; 8], sampled: bool) -> Option<Self> {
        let is_valid = trace_id != [0; 16] && parent_id != [0; 8];
        is_valid.then(|| Self { trace_id, parent_id, flags: u8::from(sampled), state: None, baggage: None })
    }

    /// Reads a `traceparent`. `None` if it breaks the syntax. One of a later version counts as far
    /// as this version reads it (Trace Context, versioning of `traceparent`).
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.splitn(5, '-');
        let mut next = || parts.next();
        let (version, trace_id, parent_id, flags) =
            (hex::<1>(next()?)?, hex(next()?)?, hex(next()?)?, hex::<1>(next()?)?);
        match (version, next()) {
            ([0xff], _) | ([0], Some(_)) => return None,
            _ => {}
        }
        let trace = Self::new(trace_id, parent_id, false)?;
        // Only the lowest bit has a meaning that every version knows.
        Some(Self { flags: if version == [0] { flags[0] } else { flags[0] & 1 }, ..trace })
    }

    /// Adds a `tracestate`. One that breaks the syntax, or is longer than 512 bytes, is left out.
    #[must_use]
    pub fn with_state(self, state: &str) -> Self {
        Self { state: Some(state.trim()).filter(|state| is_state(state)).map(str::to_string), ..self }
    }

    /// Adds a `baggage`. One that breaks the syntax, or is longer than 8192 bytes, is left out.
    #[must_use]
    pub fn with_baggage(self, baggage: &str) -> Self {
        Self { baggage: Some(baggage.trim()).filter(|baggage| is_baggage(baggage)).map(str::to_string), ..self }
    }

    /// Returns the context of a span below this one. `None` if its id is all zero.
    pub fn child(&self, parent_id: [u8; 8]) -> Option<Self> {
        (parent_id != [0; 8]).then(|| Self { parent_id, ..self.clone() })
    }

    /// Returns the id of the trace.
    pub const fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// Returns the id of the span that the request belongs to.
    pub const fn parent_id(&self) -> [u8; 8] {
        self.parent_id
    }

    /// Returns whether the sender records the trace.
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// Returns the `tracestate`.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the `baggage`.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Returns the `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", Hex(&self.trace_id), Hex(&self.parent_id), self.flags)
    }

    /// Reads it from the `_meta` of a message. `None` if there is no valid `traceparent`.
    pub fn read(meta: &Object) -> Option<Self> {
        let text = |key| meta.optional::<String>(key).ok().flatten();
        let mut trace = Self::parse(&text(PARENT)?)?;
        if let Some(state) = text(STATE) {
            trace = trace.with_state(&state);
        }
        if let Some(baggage) = text(BAGGAGE) {
            trace = trace.with_baggage(&baggage);
        }
        Some(trace)
    }

    /// Writes it into the `_meta` of a message, in place of another.
    pub fn write(&self, meta: &mut Object) {
        meta.set(PARENT, self.traceparent());
        for (key, value) in [(STATE, &self.state), (BAGGAGE, &self.baggage)] {
            match value {
                Some(value) => meta.set(key, value.as_str()),
                None => drop(meta.remove(key)),
            }
        }
    }
}

/// The baggage may hold what the application keeps secret.
impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext").field("traceparent", &self.traceparent()).finish_non_exhaustive()
    }
}

/// Bytes as lower-case hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads exactly `N` bytes of lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Checks a `tracestate`: members `key=value` with keys that occur once. Empty members are allowed.
fn is_state(state: &str) -> bool {
    let mut keys = BTreeSet::new();
    let members =
        || state.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty());
    state.len() <= MOST_STATE
        && (1..=MOST_MEMBERS).contains(&members().count())
        && members().all(|member| {
            member
                .split_once('=')
                .is_some_and(|(key, value)| is_state_key(key) && is_state_value(value) && keys.insert(key))
        })
}

/// `simple-key`, or `tenant-id@system-id`.
fn is_state_key(key: &str) -> bool {
    let rest = |text: &str| {
        text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-' | b'*' | b'/'))
    };
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    match key.split_once('@') {
        None => begins(key) && key.len() <= 256 && rest(key),
        Some((tenant, system)) => {
            let is_tenant = tenant.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
            is_tenant && tenant.len() <= 241 && rest(tenant) && begins(system) && system.len() <= 14 && rest(system)
        }
    }
}

fn is_state_value(value: &str) -> bool {
    (1..=256).contains(&value.len())
        && value.bytes().all(|c| matches!(c, b' '..=b'~') && c != b',' && c != b'=')
        && !value.ends_with(' ')
}

/// Checks a `baggage`: items `key=value` with properties after semicolons.
fn is_baggage(baggage: &str) -> bool {
    let items = || baggage.split(',');
    let is_pair = |pair: &str| pair.split_once('=').is_some_and(|(key, value)| is_token(key) && is_octets(value));
    baggage.len() <= MOST_BAGGAGE
        && items().count() <= MOST_ITEMS
        && items().all(|item| {
            let mut parts = item.split(';');
            parts.next().is_some_and(is_pair) && parts.all(|property| is_pair(property) || is_token(property))
        })
}

/// A token of RFC 9110, with white space around it.
fn is_token(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
}

fn is_octets(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    text.bytes().all(|c| matches!(c, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    // covers: META-B-020
    #[test]
    fn traceparent_is_read_strictly_and_written_back() {
        let trace = TraceContext::parse(VALID).unwrap();
        assert_eq!((trace.traceparent(), trace.is_sampled()), (VALID.to_string(), true));
        assert_eq!(trace.trace_id()[..2], [0x0a, 0xf7]);
        assert_eq!(trace.parent_id()[7], 0x31);
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-00",
            "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
        // A later version.
        let later = TraceContext::parse("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what").unwrap();
        assert_eq!(later.traceparent(), VALID);
        assert_eq!(trace.child([0; 8]), None);
        assert_eq!(TraceContext::new([1; 16], [0; 8], true), None);
    }

    // covers: META-B-020
    #[test]
    fn tracestate_and_baggage_are_dropped_if_they_break_the_syntax() {
        let of = |state: &str, baggage: &str| {
            let trace = TraceContext::parse(VALID).unwrap().with_state(state).with_baggage(baggage);
            (trace.state().is_some(), trace.baggage().is_some())
        };
        for state in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1, b=2 ,,c=3", "fw529a3039@dt=x", "a-_*/=!~"]
        {
            assert!(of(state, "").0, "{state}");
        }
        let long: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
        for state in ["", ",", "a", "A=1", "1=1", "a=1,a=2", "a==1", "a=b=c", "a@=1", "a=\u{e9}", "a=", &long.join(",")]
        {
            assert!(!of(state, "").0, "{state}");
        }
        for baggage in ["userId=alice", "a=b;p;q=r , c=%20d", "SomeKey=", "k=1;metadata"] {
            assert!(of("", baggage).1, "{baggage}");
        }
        let many = alloc::vec!["k=v"; 65].join(",");
        for baggage in
            ["", "a", "a=b,", "a b=c", "a=\"b\"", "a=b\\", "=b", "a=b;=c", &many, &format!("a={}", "x".repeat(9000))]
        {
            assert!(!of("", baggage).1, "{baggage}");
        }
    }

    #[test]
    fn members_of_meta_are_replaced_together() {
        let trace = TraceContext::parse(VALID).unwrap().with_state("a=1").with_baggage("u=x");
        let mut meta = Object::new().with("own", "kept").with(BAGGAGE, "old=1");
        trace.write(&mut meta);
        assert_eq!(TraceContext::read(&meta), Some(trace.clone()));
        assert!(!format!("{trace:?}").contains("u=x"));
        TraceContext::parse(VALID).unwrap().write(&mut meta);
        let read = TraceContext::read(&meta).unwrap();
        assert_eq!((read.state(), read.baggage(), meta.contains("own")), (None, None, true));
        meta.set(PARENT, "none");
        assert_eq!(TraceContext::read(&meta), None);
        meta.set(PARENT, false);
        assert_eq!(TraceContext::read(&meta), None);
    }
}
