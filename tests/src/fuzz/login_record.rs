//! The records of logins that a store keeps.

use mcp_proto::auth::{BadRecord, Record, Version};

/// Any bytes are a record, or are refused. A record is written and read again unchanged, within its
/// limits, and its `Debug` shows no token.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    match Record::read(data) {
        Ok(record) => check_record(&record, data),
        Err(BadRecord::Newer(version)) => assert!(version > 1, "{version}"),
        Err(BadRecord::Form) => {}
    }
}

fn check_record(record: &Record, data: &[u8]) {
    assert!(data.len() <= Record::MAX_LEN && record.entries.len() <= 4);
    let json = record.to_json();
    assert!(json.len() <= Record::MAX_LEN);
    let again = Record::read(&json).expect("what was written is read");
    // An escape may be longer than its character, so that not every entry fits.
    if json.len() + 16 < Record::MAX_LEN && again.entries.len() == record.entries.len() {
        assert_eq!(&again, record);
    }
    assert_eq!(again.to_json(), json);
    assert_ne!(Version::of(&json), Version::ABSENT);
    let shown = format!("{record:?}");
    for entry in &record.entries {
        let tokens = entry.tokens.iter().flat_map(|tokens| [Some(&tokens.access_token), tokens.refresh_token.as_ref()]);
        let secrets = tokens.flatten().chain(&entry.client.client_secret);
        // A short one may be a part of a name.
        let long = secrets.filter(|secret| secret.len() > 32 && occurs_once(data, secret.expose()));
        for secret in long {
            assert!(!shown.contains(secret.expose()), "{shown}");
        }
    }
}

fn occurs_once(data: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(data).matches(text).count() == 1
}
