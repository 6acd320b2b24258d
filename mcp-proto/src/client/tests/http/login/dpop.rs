//! A token that is bound to a key (RFC 9449): each attempt of each request waits for a proof of its
//! own, over every transport.

use super::*;
use crate::auth::{Dpop, Input as AuthInput, StoreFault};
use crate::client::{HttpMode, Redirects};
use crate::exchange::UpgradeRefusal;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};

const DEMAND: &str = "DPoP error=\"use_dpop_nonce\"";

fn binding(config: &mut ClientConfig) {
    let mut auth = AuthConfig::new("test");
    auth.dpop = Dpop::IfOffered;
    config.auth = Some(Arc::new(auth));
}

/// Returns the text of the payload of a proof.
fn claims(proof: &str) -> Value {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(proof.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

impl Guarded {
    /// A client that has logged in during its handshake.
    fn bound(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut guarded = Self::with(|config| {
            binding(config);
            set(config);
        });
        guarded.run();
        let exchange = guarded.last().0;
        guarded.challenge(exchange, 401, "DPoP algs=\"ES256\"");
        guarded.run();
        guarded.answer_discover();
        assert_eq!(guarded.http.rig.client.state(), State::Ready);
        guarded.http.rig.clear();
        guarded.events = 0;
        guarded
    }

    /// A client whose store has a bound token.
    fn with_bound(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let record = Self::bound(|_| {}).record;
        let mut guarded = Self::of(
            |config| {
                binding(config);
                set(config);
            },
            record,
        );
        guarded.tokens = 1;
        guarded
    }

    /// Returns what the proofs of the requests of MCP say. `None`: it has none.
    fn proofs(&self) -> Vec<Option<Value>> {
        self.mcp().iter().map(|(_, head, _)| head.headers.get("DPoP").map(claims)).collect()
    }

    /// Returns one text of each of the latest proofs.
    fn said(&self, from: usize, name: &str) -> Vec<String> {
        let text = |proof: &Option<Value>| proof.as_ref().unwrap()[name].as_str().unwrap_or("-").to_string();
        self.proofs()[from..].iter().map(text).collect()
    }

    /// The server refuses a request, and names a nonce.
    fn demand(&mut self, exchange: ExchangeId, nonce: &str) {
        let headers = Headers::new().with("WWW-Authenticate", DEMAND).with("DPoP-Nonce", nonce);
        self.http.item(exchange, Inbound::Response(ResponseHead { status: 401, headers }));
        self.http.item(exchange, Inbound::End);
    }

    /// Answers the step that waits for a signature.
    fn sign(&mut self, signature: Result<Vec<u8>, StoreFault>) {
        let step = self.unsigned.remove(0);
        self.http.rig.client.auth(self.http.rig.now, AuthInput::Signed(step, signature));
        self.http.rig.drain();
    }

    fn fail(&mut self, why: Closed) {
        let exchange = self.mcp().pop().unwrap().0;
        self.http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why });
    }
}

fn bound(token: &str) -> Option<String> {
    Some(format!("DPoP {token}"))
}

// covers: DPOP-C-001, DPOP-C-002, DPOP-C-003
#[test]
fn each_request_carries_the_bound_token_with_its_own_proof() {
    let mut guarded = Guarded::bound(|_| {});
    let calls: Vec<CallId> = (0..2).map(|_| guarded.http.rig.echo()).collect();
    assert_eq!(guarded.mcp().len(), 2, "they wait for their proofs");
    guarded.run();
    assert_eq!(guarded.credentials(), [None, bound("access-1"), bound("access-1"), bound("access-1")]);
    assert_eq!(guarded.said(1, "htu"), ["http://127.0.0.1:8000/mcp"; 3]);
    assert_eq!(guarded.said(1, "htm"), ["POST"; 3]);
    assert!(guarded.said(1, "ath").iter().all(|hash| hash.len() == 43));
    let mut ids = guarded.said(1, "jti");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    for (exchange, _, body) in &guarded.mcp()[2..] {
        let body: Value = serde_json::from_slice(body).unwrap();
        guarded.http.answer(*exchange, 200, &result(&body["id"]));
    }
    assert!(calls.iter().all(|call| guarded.http.rig.outcome(*call).is_ok()));
    // The driver cannot write another proof.
    let repeats = guarded.http.rig.starts.iter().filter_map(|(_, start)| match start {
        Start::Http { raw: false, repeatable, .. } => Some(*repeatable),
        _ => None,
    });
    assert_eq!(repeats.skip(1).collect::<Vec<_>>(), [false; 3]);
    guarded.http.assert_at_rest();
}

// covers: DPOP-C-006, DPOP-C-007
#[test]
fn demand_for_a_nonce_repeats_the_request_with_another_proof() {
    let mut guarded = Guarded::bound(|_| {});
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.demand(guarded.last().0, "first");
    guarded.run();
    let mcp = guarded.mcp();
    assert_eq!((mcp.len(), &mcp[2].2), (4, &mcp[3].2), "the same bytes");
    assert_eq!(guarded.said(2, "nonce"), ["-", "first"]);
    let ids = guarded.said(2, "jti");
    assert_ne!(ids[0], ids[1]);
    // Any response may have the next nonce.
    let (exchange, id) = guarded.last();
    let headers = Headers::new().with("content-type", "application/json").with("dpop-nonce", "second");
    guarded.http.item(exchange, Inbound::Response(ResponseHead { status: 200, headers }));
    let message = parse(result(&id).to_string().into(), 128).unwrap();
    guarded.http.item(exchange, Inbound::Message(message));
    guarded.http.item(exchange, Inbound::End);
    assert!(guarded.http.rig.outcome(call).is_ok());
    guarded.http.rig.echo();
    guarded.run();
    assert_eq!(guarded.said(4, "nonce"), ["second"]);
    assert_eq!((guarded.tokens, guarded.pages()), (1, 0));
}

// covers: DPOP-C-006
#[test]
fn second_demand_for_a_nonce_ends_the_call() {
    let mut guarded = Guarded::bound(|_| {});
    let call = guarded.http.rig.echo();
    for nonce in ["first", "second"] {
        guarded.run();
        guarded.demand(guarded.last().0, nonce);
    }
    guarded.run();
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.unauthorized(), Some(&AuthError::ProofRefused));
    assert_eq!((guarded.mcp().len(), guarded.tokens, guarded.pages()), (4, 1, 0));
    guarded.http.assert_at_rest();
}

#[test]
fn refused_bound_token_is_renewed_with_its_key() {
    let mut guarded = Guarded::bound(|_| {});
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.challenge(guarded.last().0, 401, "DPoP error=\"invalid_token\"");
    guarded.run();
    assert_eq!(guarded.credentials()[3..], [bound("access-2")]);
    let (exchange, id) = guarded.last();
    guarded.http.answer(exchange, 200, &result(&id));
    assert!(guarded.http.rig.outcome(call).is_ok());
    assert_eq!((guarded.tokens, guarded.pages()), (2, 0));
}

#[test]
fn failed_signature_ends_the_call() {
    let mut guarded = Guarded::bound(|_| {});
    guarded.stalls = true;
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.sign(Err(StoreFault("no token in the slot".into())));
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.unauthorized(), Some(&AuthError::Signature("no token in the slot".into())));
    assert_eq!((error.sent(), guarded.http.rig.client.state()), (Sent::No, State::Ready));
    assert_eq!(guarded.mcp().len(), 2);
    guarded.http.assert_at_rest();
}

#[test]
fn limit_of_a_call_runs_while_its_proof_is_signed() {
    let mut guarded = Guarded::bound(|config| config.timeout = Some(Duration::from_secs(5)));
    guarded.stalls = true;
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.http.rig.tick(Duration::from_secs(5));
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(error.to_string(), "no response within 5000 ms: the request waited for a login");
    assert_eq!(error.sent(), Sent::No);
    // The signature comes too late, and nothing goes out with it.
    guarded.sign(Ok(vec![7; 64]));
    assert_eq!((guarded.mcp().len(), guarded.http.rig.diagnostics()), (2, vec![DiagnosticKind::BadEvent]));
    guarded.http.assert_at_rest();
}

#[test]
fn cancelled_call_sends_nothing_after_its_signature() {
    let mut guarded = Guarded::bound(|_| {});
    guarded.stalls = true;
    let (first, second) = (guarded.http.rig.echo(), guarded.http.rig.echo());
    guarded.run();
    guarded.http.rig.client.cancel(guarded.http.rig.now, first, None);
    guarded.http.rig.drain();
    guarded.sign(Ok(vec![7; 64]));
    guarded.sign(Ok(vec![7; 64]));
    assert_eq!(guarded.mcp().len(), 3);
    let (exchange, id) = guarded.last();
    guarded.http.answer(exchange, 200, &result(&id));
    assert!(guarded.http.rig.outcome(second).is_ok());
    guarded.http.assert_at_rest();
}

#[test]
fn proof_of_an_older_token_is_made_again() {
    let mut guarded = Guarded::bound(|_| {});
    guarded.stalls = true;
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.stalls = false;
    guarded.http.rig.client.login(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    assert_eq!(guarded.tokens, 2);
    guarded.sign(Ok(vec![7; 64]));
    guarded.run();
    assert_eq!(guarded.credentials()[2..], [bound("access-2")]);
    let (exchange, id) = guarded.last();
    guarded.http.answer(exchange, 200, &result(&id));
    assert!(guarded.http.rig.outcome(call).is_ok());
}

#[test]
fn request_lost_with_its_connection_is_repeated_once() {
    for lives in [true, false] {
        let mut guarded = Guarded::bound(|_| {});
        let call = guarded.http.rig.call(crate::model::resources::read("file:///a"));
        guarded.run();
        guarded.fail(Closed::Reset);
        guarded.run();
        let ids = guarded.said(2, "jti");
        assert_eq!(ids.len(), 2);
        assert_ne!(ids[0], ids[1]);
        if lives {
            let (exchange, id) = guarded.last();
            let contents = json!({"contents": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
            guarded.http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": contents}));
            assert!(guarded.http.rig.outcome(call).is_ok(), "{:?}", guarded.http.rig.outcome(call));
        } else {
            // The repetitions of the client for lost responses are others.
            for _ in 0..9 {
                guarded.fail(Closed::Reset);
                guarded.run();
            }
            assert!(guarded.http.rig.outcome(call).is_err());
        }
        guarded.http.assert_at_rest();
    }
}

#[test]
fn call_that_must_not_run_twice_is_not_repeated() {
    let mut guarded = Guarded::bound(|_| {});
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.fail(Closed::Eof);
    guarded.run();
    assert!(matches!(guarded.http.rig.outcome(call), Err(CallError::Closed { why: Closed::Eof, .. })));
    assert_eq!(guarded.mcp().len(), 3);
}

#[test]
fn redirected_request_has_a_proof_for_its_place() {
    let mut guarded = Guarded::bound(|config| config.redirects = Redirects::Follow { max: 5 });
    guarded.http.rig.echo();
    for location in ["/other", "https://elsewhere.example/mcp"] {
        guarded.run();
        let headers = Headers::new().with("Location", location);
        let exchange = guarded.last().0;
        guarded.http.item(exchange, Inbound::Response(ResponseHead { status: 307, headers }));
        guarded.http.item(exchange, Inbound::End);
    }
    guarded.run();
    assert_eq!(guarded.credentials()[2..], [bound("access-1"), bound("access-1"), None]);
    let proofs = guarded.proofs();
    let places = proofs[2..].iter().map(|proof| proof.as_ref().map(|proof| proof["htu"].as_str().unwrap()));
    let wanted = [Some("http://127.0.0.1:8000/mcp"), Some("http://127.0.0.1:8000/other"), None];
    assert_eq!(places.collect::<Vec<_>>(), wanted);
}

// covers: DPOP-C-001, AUTHT-C-001
#[test]
fn session_its_listener_and_its_end_carry_proofs() {
    let mut guarded = Guarded::with_bound(|config| config.policy = Policy::Legacy);
    guarded.run();
    guarded.http.accept("s1");
    guarded.run();
    let note = guarded.mcp().pop().unwrap().0;
    guarded.http.refuse(note, 202);
    guarded.run();
    // A stream that breaks, and is resumed.
    let listener = guarded.mcp().pop().unwrap().0;
    guarded.http.stream(listener);
    guarded.http.numbered(listener, "e1", None, None);
    guarded.http.item(listener, Inbound::End);
    let next = guarded.http.rig.client.poll_timeout().unwrap() - guarded.http.rig.now;
    guarded.http.rig.tick(next);
    guarded.run();
    assert_eq!(guarded.mcp().pop().unwrap().1.headers.get("last-event-id"), Some("e1"));
    guarded.http.rig.client.close(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    assert_eq!(guarded.said(0, "htm"), ["POST", "POST", "GET", "GET", "DELETE"]);
    assert!(guarded.credentials().iter().all(|field| *field == bound("access-1")));
    let delete = guarded.mcp().pop().unwrap();
    assert_eq!(delete.1.headers.get("mcp-session-id"), Some("s1"));
    guarded.http.refuse(delete.0, 204);
    assert!(matches!(guarded.http.rig.events.last(), Some(Event::Terminated(Termination::Requested))));
    assert_eq!(guarded.http.rig.client.poll_timeout(), None);
}

#[test]
fn end_of_a_session_waits_for_its_proof_for_a_limited_time() {
    let mut guarded = Guarded::with_bound(|config| {
        (config.policy, config.compat.listener) = (Policy::Legacy, ListenerStart::Never);
    });
    guarded.run();
    guarded.http.accept("s1");
    guarded.run();
    let note = guarded.mcp().pop().unwrap().0;
    guarded.http.refuse(note, 202);
    guarded.stalls = true;
    guarded.http.rig.client.close(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    assert_eq!(guarded.unsigned.len(), 1);
    let next = guarded.http.rig.client.poll_timeout().unwrap() - guarded.http.rig.now;
    guarded.http.rig.tick(next);
    assert!(matches!(guarded.http.rig.events.last(), Some(Event::Terminated(Termination::Requested))));
    assert_eq!((guarded.mcp().len(), guarded.http.rig.client.poll_timeout()), (2, None));
}

// covers: DPOP-C-001, S3-45
#[test]
fn stream_and_messages_of_http_sse_carry_proofs() {
    let mut guarded = Guarded::with_bound(|config| config.http_mode = HttpMode::Sse);
    guarded.run();
    let stream = guarded.mcp().pop().unwrap().0;
    guarded.http.stream(stream);
    let data = Data::Other { event: "endpoint".into(), data: Bytes::from_static(b"/m?s=1") };
    guarded.http.item(stream, Inbound::Event(SseEvent { id: None, retry: None, data }));
    guarded.run();
    let (exchange, id) = guarded.last();
    guarded.demand(exchange, "n");
    guarded.run();
    let again = guarded.last().0;
    guarded.http.refuse(again, 202);
    guarded.http.event(stream, &json!({"jsonrpc": "2.0", "id": id, "result": initialized("2024-11-05")}));
    assert_eq!(guarded.http.rig.client.state(), State::Ready);
    guarded.run();
    assert_eq!(guarded.said(0, "htm"), ["GET", "POST", "POST", "POST"]);
    let (place, endpoint) = ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/m");
    assert_eq!(guarded.said(0, "htu"), [place, endpoint, endpoint, endpoint]);
    assert_eq!(guarded.said(0, "nonce"), ["-", "-", "n", "n"]);
    assert!(guarded.credentials().iter().all(|field| *field == bound("access-1")));
}

// covers: DPOP-C-001, DPOP-C-006, WS-C-010
#[test]
fn handshake_of_a_websocket_carries_a_proof() {
    let target = ClientConfig::url("ws://127.0.0.1:8000/mcp?x=1").unwrap().target;
    let mut guarded = Guarded::with_bound(|config| config.target = target);
    let heads = |guarded: &Guarded| -> Vec<(ExchangeId, RequestHead)> {
        let head = |(exchange, start): &(ExchangeId, Start)| match start {
            Start::WebSocket { head, .. } => Some((*exchange, head.clone())),
            _ => None,
        };
        guarded.http.rig.starts.iter().filter_map(head).collect()
    };
    assert!(heads(&guarded).is_empty());
    guarded.run();
    let exchange = heads(&guarded)[0].0;
    let refusal =
        UpgradeRefusal { challenges: vec![DEMAND.into()], dpop_nonce: Some("n".into()), ..UpgradeRefusal::new(401) };
    let why = Closed::NotUpgraded(Box::new(refusal));
    guarded.http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::No, why });
    guarded.run();
    let heads = heads(&guarded);
    assert_eq!(heads.len(), 2);
    let proofs: Vec<Value> = heads.iter().map(|(_, head)| claims(head.headers.get("DPoP").unwrap())).collect();
    for ((_, head), proof) in heads.iter().zip(&proofs) {
        assert_eq!(head.headers.get("authorization"), Some("DPoP access-1"));
        assert_eq!((&proof["htm"], &proof["htu"]), (&json!("GET"), &json!("http://127.0.0.1:8000/mcp")));
    }
    assert_eq!((&proofs[0]["nonce"], &proofs[1]["nonce"]), (&Value::Null, &json!("n")));
    assert_ne!(proofs[0]["jti"], proofs[1]["jti"]);
    assert_eq!((guarded.pages(), guarded.tokens), (0, 1));
    // A signer that fails ends the negotiation with its reason.
    let target = ClientConfig::url("ws://127.0.0.1:8000/mcp").unwrap().target;
    let mut guarded = Guarded::with_bound(|config| config.target = target);
    guarded.stalls = true;
    guarded.run();
    guarded.sign(Err(StoreFault("gone".into())));
    let Some(Termination::Negotiation(why)) = guarded.http.rig.termination() else { panic!() };
    assert_eq!(why.unauthorized(), Some(&AuthError::Signature("gone".into())));
}
