//! Logins without a page: with the key of the client, an assertion, an identity provider, and a
//! code for another device.

use super::*;
use crate::auth::{Alg, ClientKey, IdentityProvider, SignKey, SubjectToken};

/// What a platform or an identity provider issued.
pub(super) const ASSERTION: &str = "hunter2.a/b+c==";
/// The answer of the identity provider.
pub(super) const EXCHANGED: &str = "{\"access_token\":\"hunter2.jag\",\"token_type\":\"N_A\"}";
/// A private key, which has bytes that a form encodes.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nhunter2+/==\n-----END PRIVATE KEY-----\n";

pub(super) fn configure(auth: &mut AuthConfig, world: &World) {
    auth.grant = world.grant.clone();
    let of = |auth| GivenClient { issuer: BASE.into(), client_id: "given".into(), auth };
    let key = ClientKey { key: SignKey::Pkcs8(KEY.into()), alg: Alg::Es256, kid: None };
    match world.method {
        AuthMethod::Key => auth.registrations = vec![Registration::Given(of(ClientAuth::Key(key)))],
        _ => auth.registrations = vec![Registration::Given(of(ClientAuth::Secret(CLIENT_SECRET.into())))],
    }
}

fn enterprise() -> Grant {
    let auth = ClientAuth::Secret(CLIENT_SECRET.into());
    let client = GivenClient { issuer: "http://127.0.0.1:8000/idp".into(), client_id: "there".into(), auth };
    let token_endpoint = format!("{BASE}/exchange?api_key=hunter2");
    Grant::Enterprise(Box::new(IdentityProvider { token_endpoint, client, subject: SubjectToken::RefreshToken }))
}

/// The answer to the request for a code.
pub(super) fn device() -> String {
    format!(
        "{{\"device_code\":\"hunter2/d\",\"user_code\":\"hunter2-u\",\"verification_uri\":\"{BASE}/go\",\
         \"verification_uri_complete\":\"{BASE}/go?user_code=hunter2-u\",\"expires_in\":600,\"interval\":5}}"
    )
}

/// Issues tokens for another grant than a code.
pub(super) fn issue(world: &mut World, head: &str, body: &str) -> String {
    let has = |name: &str, value: &str| body.split('&').any(|field| field == format!("{name}={}", encoded(value)));
    match world.grant {
        Grant::ClientCredentials => assert!(has("grant_type", "client_credentials"), "{body}"),
        Grant::Device => assert!(has("device_code", "hunter2/d"), "{body}"),
        Grant::Enterprise(_) => assert!(has("assertion", "hunter2.jag"), "{body}"),
        _ => assert!(has("assertion", ASSERTION), "{body}"),
    }
    match world.method {
        _ if world.grant == Grant::Assertion => assert!(!head.contains("Basic") && !body.contains("client_"), "{body}"),
        AuthMethod::Basic => assert!(head.contains(&basic("given")), "{head}"),
        _ => assert!(body.contains("&client_assertion=ey"), "{body}"),
    }
    world.tokens += 1;
    let access = format!("{ACCESS}{}", world.tokens);
    document("200", &format!("{{\"access_token\":\"{access}\",\"token_type\":\"Bearer\",\"expires_in\":60}}"))
}

// covers: EMA-B-008, S2-44
#[test]
fn logins_without_a_page_are_masked_and_replayed() {
    let grants = [Grant::ClientCredentials, Grant::Assertion, enterprise(), Grant::Device];
    let ways =
        grants.into_iter().flat_map(|grant| [AuthMethod::Basic, AuthMethod::Key].map(|way| (grant.clone(), way)));
    for (grant, method) in ways {
        for redaction in [Redaction::Raw, Redaction::Redacted] {
            let is_device = grant == Grant::Device;
            let mut session =
                Session::new(World { grant: grant.clone(), ..World::new(Known::Given, method, redaction) });
            session.ping();
            session.now = session.now + Duration::from_secs(5);
            session.client.handle_timeout(session.now);
            session.rest();
            assert_eq!((session.ended, session.world.tokens), (1, 1), "{grant:?} {method:?}");
            if !is_device {
                session.now = session.now + Duration::from_secs(61);
                session.client.handle_timeout(session.now);
                session.ping();
                assert_eq!((session.ended, session.world.tokens), (2, 2), "{grant:?} {method:?}");
            }
            let (world, text) = session.finish();
            let summary = Recording::read(text.as_bytes()).unwrap().replay();
            let summary = summary.unwrap_or_else(|difference| panic!("{grant:?} {world:?}: {difference}"));
            assert!(summary.complete, "{summary:?}");
            assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{grant:?} {text}");
            if redaction == Redaction::Redacted {
                for secret in [basic("given"), encoded(CLIENT_SECRET), "unter2".into(), "client_assertion=ey".into()] {
                    assert!(!text.contains(&secret), "{secret}: {text}");
                }
            }
        }
    }
}
