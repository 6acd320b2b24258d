use super::*;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

fn client() -> RegisteredClient {
    RegisteredClient {
        client_id: "c".into(),
        client_secret: Some("s".into()),
        secret_expires: Some(u64::MAX),
        method: AuthMethod::Basic,
        redirect_uri: Some("http://127.0.0.1:1/callback".into()),
        scopes: Scopes::parse("a b"),
        source: ClientSource::Dynamic,
    }
}

fn entry() -> Entry {
    Entry {
        issuer: "https://issuer/".into(),
        resource: "https://h/mcp".into(),
        client: client(),
        requested: Scopes::parse("c a"),
        tokens: Some(Tokens {
            access_token: "t".into(),
            token_type: TokenType::Dpop,
            dpop_key: Some(Box::new(KeyPair { private: "k".into(), public: PublicKey::Ed25519(vec![1; 32]) })),
            refresh_token: Some("r".into()),
            expires: Some(7),
            lifetime: Some(8),
            granted: Scopes::parse("a"),
            generation: 9,
        }),
    }
}

/// An entry without anything that may be absent.
fn bare() -> Entry {
    let client = RegisteredClient {
        client_secret: None,
        secret_expires: None,
        method: AuthMethod::None,
        redirect_uri: None,
        scopes: Scopes::new(),
        source: ClientSource::Given,
        ..client()
    };
    Entry { client, requested: Scopes::new(), tokens: None, ..entry() }
}

fn text(record: &Record) -> String {
    String::from_utf8(record.to_json()).unwrap()
}

const FULL: &str = concat!(
    r#"{"version":1,"entries":[{"issuer":"https://issuer/","resource":"https://h/mcp","client":{"client_id":"c","#,
    r#""client_secret":"s","secret_expires":18446744073709551615,"method":"client_secret_basic","#,
    r#""redirect_uri":"http://127.0.0.1:1/callback","scopes":"a b","source":"dynamic"},"requested":"a c","tokens":"#,
    r#"{"access_token":"t","token_type":"DPoP","dpop_key":{"private":"k","public":{"crv":"Ed25519","kty":"OKP","#,
    r#""x":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"}},"refresh_token":"r","expires":7,"lifetime":8,"granted":"a","generation":9}}]}"#,
);

const BARE: &str = concat!(
    r#"{"version":1,"entries":[{"issuer":"https://issuer/","resource":"https://h/mcp","client":{"client_id":"c","#,
    r#""method":"none","scopes":"","source":"given"},"requested":""}]}"#,
);

#[test]
fn record_has_this_form() {
    for (record, json) in [
        (Record { entries: vec![entry()] }, FULL),
        (Record { entries: vec![bare()] }, BARE),
        (Record::default(), r#"{"version":1,"entries":[]}"#),
    ] {
        assert_eq!(text(&record), json);
        assert_eq!(Record::read(json.as_bytes()), Ok(record.clone()));
        let indented = json.replace(',', ",\r\n\t");
        assert_eq!(Record::read(indented.as_bytes()), Ok(record));
    }
}

#[test]
fn nulls_and_other_members_count_as_absent() {
    let json = BARE
        .replace(r#""requested":"""#, r#""requested":null,"tokens":null,"dpop_key":{}"#)
        .replace(r#""scopes":"""#, r#""scopes":null,"client_secret":null,"secret_expires":null,"redirect_uri":null"#)
        .replacen('{', r#"{"comment":"x","#, 1);
    assert_eq!(Record::read(json.as_bytes()), Ok(Record { entries: vec![bare()] }));
}

// covers: DPOP-C-009
#[test]
fn tokens_of_an_older_version_are_bearer_tokens() {
    let (before, rest) = FULL.split_once(r#""token_type""#).unwrap();
    let json = format!("{before}{}", &rest[rest.find(r#""refresh_token""#).unwrap()..]);
    let mut wanted = entry();
    let tokens = wanted.tokens.as_mut().unwrap();
    (tokens.token_type, tokens.dpop_key) = (TokenType::Bearer, None);
    assert_eq!(Record::read(json.as_bytes()), Ok(Record { entries: vec![wanted] }));
}

#[test]
fn record_of_a_newer_version_is_refused_as_such() {
    for (json, version) in [
        (r#"{"version":2}"#, 2),
        (r#"{"version":2,"entries":{"a":1}}"#, 2),
        (r#"{"entries":[],"version":18446744073709551615}"#, u64::MAX),
    ] {
        assert_eq!(Record::read(json.as_bytes()), Err(BadRecord::Newer(version)));
    }
    assert!(format!("{}", BadRecord::Newer(12)).contains("version 12"));
    assert_ne!(format!("{}", BadRecord::Form), "");
}

#[test]
fn what_is_no_record_is_refused() {
    for json in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"version":1}"#,
        r#"{"version":0,"entries":[]}"#,
        r#"{"version":-1,"entries":[]}"#,
        r#"{"version":"1","entries":[]}"#,
        r#"{"version":1.5,"entries":[]}"#,
        r#"{"version":1,"entries":null}"#,
        r#"{"version":1,"entries":{}}"#,
        r#"{"version":1,"entries":[null]}"#,
        r#"{"version":1,"entries":[{}]}"#,
        r#"{"version":1,"entries":[]"#,
        r#"{"version":1,"entries":[]} x"#,
    ] {
        assert_eq!(Record::read(json.as_bytes()), Err(BadRecord::Form), "{json}");
    }
    assert_eq!(Record::read(b"\xff"), Err(BadRecord::Form));
    // Each member with another type, and each required one absent.
    for member in
        ["issuer", "resource", "client", "requested", "tokens", "client_id", "client_secret", "secret_expires"]
            .into_iter()
            .chain([
                "method",
                "redirect_uri",
                "scopes",
                "source",
                "access_token",
                "refresh_token",
                "expires",
                "lifetime",
            ])
            .chain(["granted", "generation", "token_type", "dpop_key", "private", "public"])
    {
        let json = FULL.replace(&format!("\"{member}\":"), &format!("\"{member}\":true,\"x\":"));
        assert_eq!(Record::read(json.as_bytes()), Err(BadRecord::Form), "{member}");
    }
    let required = ["issuer", "resource", "client", "client_id", "method", "source", "access_token", "generation"];
    for member in required.into_iter().chain(["dpop_key", "private", "public"]) {
        let json = FULL.replace(&format!("\"{member}\":"), "\"x\":");
        assert_eq!(Record::read(json.as_bytes()), Err(BadRecord::Form), "{member}");
    }
    for (member, other) in
        [("client_secret_basic", "tls_client_auth"), ("dynamic", "Dynamic"), ("DPoP", "MAC"), ("Ed25519", "Ed448")]
    {
        assert_eq!(Record::read(FULL.replace(member, other).as_bytes()), Err(BadRecord::Form), "{member}");
    }
}

#[test]
fn record_has_at_most_four_entries() {
    let numbered = |number: u32| Entry { issuer: format!("https://issuer/{number}"), ..bare() };
    let record = Record { entries: (0..6).map(numbered).collect() };
    let first = Record { entries: (0..4).map(numbered).collect() };
    assert_eq!(Record::read(&record.to_json()), Ok(first));
    let json = text(&Record { entries: vec![bare()] });
    let one = &json[json.find('[').unwrap() + 1..json.rfind(']').unwrap()];
    let many = format!(r#"{{"version":1,"entries":[{}]}}"#, [one; 9].join(","));
    assert_eq!(Record::read(many.as_bytes()).unwrap().entries.len(), 4);
}

#[test]
fn record_has_at_most_64_kib() {
    let with = |len: usize| Entry { resource: "x".repeat(len), ..bare() };
    // One that does not fit is left out, and those after it are written.
    let record = Record { entries: vec![with(30 << 10), with(40 << 10), with(30 << 10)] };
    let json = record.to_json();
    assert!(json.len() <= Record::MAX_LEN);
    assert_eq!(Record::read(&json), Ok(Record { entries: vec![with(30 << 10), with(30 << 10)] }));
    let room = Record::MAX_LEN - text(&Record { entries: vec![with(0)] }).len();
    for (len, fits) in [(room - 1, true), (room + 1, false)] {
        let json = Record { entries: vec![with(len)] }.to_json();
        assert!(json.len() <= Record::MAX_LEN);
        assert_eq!(Record::read(&json).unwrap().entries.len(), usize::from(fits), "{len}");
    }
    let padded = |len: usize| format!("{FULL}{}", " ".repeat(len - FULL.len()));
    assert!(Record::read(padded(Record::MAX_LEN).as_bytes()).is_ok());
    assert_eq!(Record::read(padded(Record::MAX_LEN + 1).as_bytes()), Err(BadRecord::Form));
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let secret = || ".{0,20}".prop_map(Secret::from);
    let scopes = || "[a-c ]{0,9}".prop_map(|text| Scopes::parse(&text));
    let method = prop::sample::select(&[AuthMethod::None, AuthMethod::Basic, AuthMethod::Post][..]);
    let source = prop::sample::select(&[ClientSource::Given, ClientSource::Document, ClientSource::Dynamic][..]);
    let client =
        (".*", prop::option::of(secret()), any::<Option<u64>>(), method, any::<Option<String>>(), scopes(), source);
    let key = (secret(), any::<[u8; 32]>(), any::<[u8; 32]>()).prop_map(|(private, x, y)| {
        Box::new(KeyPair { private, public: PublicKey::P256 { x: x.to_vec(), y: y.to_vec() } })
    });
    let key = prop::option::of((any::<bool>(), key));
    let tokens = (secret(), key, prop::option::of(secret()), any::<[Option<u64>; 2]>(), scopes(), any::<u64>());
    (".*", ".*", client, scopes(), prop::option::of(tokens)).prop_map(
        |(issuer, resource, client, requested, tokens)| {
            let (client_id, client_secret, secret_expires, method, redirect_uri, scopes, source) = client;
            Entry {
                issuer,
                resource,
                client: RegisteredClient {
                    client_id,
                    client_secret,
                    secret_expires,
                    method,
                    redirect_uri,
                    scopes,
                    source,
                },
                requested,
                tokens: tokens.map(|(access_token, key, refresh_token, [expires, lifetime], granted, generation)| {
                    let is_bound = key.as_ref().is_some_and(|(is_bound, _)| *is_bound);
                    Tokens {
                        access_token,
                        token_type: if is_bound { TokenType::Dpop } else { TokenType::Bearer },
                        dpop_key: key.map(|(_, key)| key),
                        refresh_token,
                        expires,
                        lifetime,
                        granted,
                        generation,
                    }
                }),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in prop::collection::vec(any_entry(), 0..=4)) {
        let record = Record { entries };
        let json = record.to_json();
        prop_assert_eq!(Record::read(&json), Ok(record));
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..FULL.len(), byte: u8) {
        let _ = Record::read(&bytes);
        let mut other = FULL.as_bytes().to_vec();
        other[at] = byte;
        if let Ok(record) = Record::read(&other) {
            prop_assert!(record.entries.len() <= 1);
        }
    }
}
