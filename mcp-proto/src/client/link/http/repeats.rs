//! Detection of repeated events on a stream: a server that replays earlier events makes no
//! progress. The client compares keyed hashes of the latest events, so a server cannot choose
//! events that collide.

use crate::exchange::Data;
use crate::rpc::{InvalidMessage, Message, write_message};
use crate::seed::Seed;
use alloc::collections::VecDeque;
use core::fmt;
use hmac_sha256::HMAC;

/// Number of events that are compared.
const WINDOW: usize = 16;

/// The key for the event hashes of one client.
#[derive(Clone)]
pub(in crate::client) struct EventKey([u8; 32]);

impl EventKey {
    /// Returns the key of the client with this seed.
    pub(in crate::client) fn new(seed: &Seed) -> Self {
        Self(seed.derive("events"))
    }

    fn id(&self, id: &str) -> u64 {
        let mut mac = HMAC::new(self.0);
        mac.update(b"id");
        mac.update(id);
        first(mac)
    }

    /// Returns the hash of the data of an event. Messages are equal if their parts are: white space
    /// between the members of the envelope does not count.
    fn data(&self, data: &Data) -> u64 {
        let mut mac = HMAC::new(self.0);
        match data {
            Data::None => mac.update(b"none"),
            Data::Message(message) => {
                mac.update(b"message");
                mac.update(write_message(message));
            }
            Data::Batch(elements) => {
                mac.update(b"batch");
                elements.iter().for_each(|element| self.element(element, &mut mac));
            }
            Data::Invalid(defect) => {
                mac.update(b"bad");
                mac.update(&defect.head);
            }
            Data::Other { event, data } => {
                mac.update(b"other");
                mac.update(self.id(event).to_be_bytes());
                mac.update(data);
            }
        }
        first(mac)
    }

    fn element(&self, element: &Result<Message, InvalidMessage>, mac: &mut HMAC) {
        let data = match element {
            Ok(message) => Data::Message(message.clone()),
            Err(defect) => Data::Invalid(defect.clone()),
        };
        mac.update(self.data(&data).to_be_bytes());
    }
}

impl fmt::Debug for EventKey {
    /// Writes the name only, never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventKey")
    }
}

fn first(mac: HMAC) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = mac.finalize();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// The comparison of an event with earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Novelty {
    /// Its id is new.
    NewId,
    /// Its id is known, but its data differs: some servers give every event the same id.
    OtherData,
    /// Its id is known, with the same data.
    Repeat,
}

/// The hashes of id and data of the latest events with an id. An event without an id is never a
/// repeat, and occupies no entry.
#[derive(Debug, Default)]
pub(super) struct Repeats(VecDeque<(u64, u64)>);

impl Repeats {
    /// Compares an event with earlier ones, and stores it.
    pub(super) fn add(&mut self, key: &EventKey, id: &str, data: &Data) -> Novelty {
        let event = (key.id(id), key.data(data));
        let novelty = if self.0.contains(&event) {
            Novelty::Repeat
        } else if self.0.iter().any(|(id, _)| *id == event.0) {
            Novelty::OtherData
        } else {
            Novelty::NewId
        };
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back(event);
        novelty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::parse;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec;
    use bytes::Bytes;

    fn message(text: &'static str) -> Data {
        Data::Message(parse(Bytes::from_static(text.as_bytes()), 128).unwrap())
    }

    fn add(repeats: &mut Repeats, id: &str, data: &Data) -> Novelty {
        repeats.add(&EventKey([7; 32]), id, data)
    }

    // covers: B-019
    #[test]
    fn an_event_is_a_repeat_if_id_and_data_are_equal() {
        let mut repeats = Repeats::default();
        let (a, b) = (r#"{"jsonrpc":"2.0","method":"a"}"#, r#"{"jsonrpc":"2.0","method":"b"}"#);
        assert_eq!(add(&mut repeats, "1", &message(a)), Novelty::NewId);
        assert_eq!(add(&mut repeats, "1", &message(a)), Novelty::Repeat);
        assert_eq!(add(&mut repeats, "1", &message(b)), Novelty::OtherData);
        assert_eq!(add(&mut repeats, "2", &message(a)), Novelty::NewId);
        assert_eq!(add(&mut repeats, "1", &message(b)), Novelty::Repeat);
        assert_eq!(add(&mut repeats, "1", &Data::None), Novelty::OtherData);
    }

    #[test]
    fn every_kind_of_data_has_its_own_hash() {
        let text = Bytes::from_static(b"{}");
        let defect = parse(text.clone(), 128).unwrap_err();
        let other =
            |event: &str, data: &'static [u8]| Data::Other { event: event.to_string(), data: Bytes::from_static(data) };
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let Data::Message(parsed) = message(ping) else { panic!() };
        let all = vec![
            Data::None,
            message(ping),
            message(r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#),
            message(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#),
            message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Data::Invalid(defect.clone()),
            Data::Batch(vec![]),
            Data::Batch(vec![Ok(parsed.clone())]),
            Data::Batch(vec![Ok(parsed.clone()), Ok(parsed)]),
            Data::Batch(vec![Err(defect)]),
            other("a", b"bc"),
            other("ab", b"c"),
            other("ab", b"d"),
        ];
        let mut repeats = Repeats::default();
        for (n, data) in all.iter().enumerate() {
            assert_eq!(add(&mut repeats, "1", data) == Novelty::NewId, n == 0, "{data:?}");
            assert_eq!(add(&mut Repeats::default(), "1", data), Novelty::NewId);
        }
        for data in &all {
            assert_eq!(add(&mut repeats, "1", data), Novelty::Repeat, "{data:?}");
        }
    }

    // covers: B-019
    #[test]
    fn sixteen_events_are_remembered() {
        let mut repeats = Repeats::default();
        for n in 0..17 {
            assert_eq!(add(&mut repeats, &format!("{n}"), &Data::None), Novelty::NewId);
        }
        assert_eq!(add(&mut repeats, "1", &Data::None), Novelty::Repeat);
        assert_eq!(add(&mut repeats, "0", &Data::None), Novelty::NewId);
        assert_eq!(repeats.0.len(), WINDOW);
    }

    #[test]
    fn hashes_depend_on_the_seed() {
        let keys = [[1; 32], [2; 32]].map(|seed| EventKey::new(&Seed::new(seed)));
        assert_ne!(keys[0].id("1"), keys[1].id("1"));
        assert_ne!(keys[0].data(&Data::None), keys[1].data(&Data::None));
        assert_eq!(format!("{:?}", keys[0]), "EventKey");
    }
}
