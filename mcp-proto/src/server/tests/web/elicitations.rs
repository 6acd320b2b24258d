//! Web pages of clients of 2025-11-25 over HTTP: which stream carries what, and the error where
//! none can.

use super::*;
use crate::server::tests::elicitations::page;

const URLS: &str = r#"{"elicitation":{"url":{}}}"#;
const BOTH: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

fn json_only(client: &Client) -> Headers {
    client.headers().with("Accept", "application/json")
}

fn elicited(site: &mut Site, id: &str) {
    site.bench.server.elicited(site.bench.now, id);
    site.take();
}

fn is_completion(line: &str, id: &str) -> bool {
    let crate::rpc::Message::Notification(note) = message(event(line).1) else { panic!("{line}") };
    let params = Object::read_opt(note.params.as_ref()).unwrap();
    note.method == "notifications/elicitation/complete" && params.required::<String>("elicitationId").unwrap() == id
}

// covers: ELIC-S-017, ELIC-S-018, ELIC-S-019, X-08
#[test]
fn request_is_refused_where_no_stream_can_ask() {
    let mut site = Site::new();
    let (client, other) = (site.session("2025-11-25", URLS), site.session("2025-11-25", URLS));
    let x = site.post(json_only(&client), &call(1));
    let (responder, incoming) = site.handed();
    let id = incoming.elicitation_id("pay");
    site.bench.answer(responder, page(None));
    let said = site.said(x);
    let [answer] = &said[..] else { panic!("{said:?}") };
    let refused = error(answer.strip_prefix("200 ").unwrap());
    let page_in_it =
        format!(r#"{{"mode":"url","message":"Pay first","url":"https://pay.example/4711","elicitationId":"{id}"}}"#);
    assert_eq!(
        (refused.code, refused.data.unwrap().as_str()),
        (-32042, &*format!(r#"{{"elicitations":[{page_in_it}]}}"#))
    );
    assert_eq!(site.bench.server.running(), 0);
    // Its completion waits for the client to listen. Another session never gets it.
    elicited(&mut site, &id);
    let listens = site.bare("GET", other.headers());
    assert!(site.said(listens).iter().all(|line| !line.contains(&id)));
    let own = site.bare("GET", client.headers());
    let said = site.said(own);
    assert!(is_completion(&said[1], &id), "{said:?}");
    // The client listens now, so it can be asked.
    let x = site.post(json_only(&client), &call(2));
    let (responder, _) = site.handed();
    site.bench.answer(responder, page(None));
    assert_eq!((site.said(x).len(), site.said(own).len()), (0, 1));
}

// covers: ELIC-S-019
#[test]
fn form_is_never_in_an_error_with_pages() {
    let with_a_form = || {
        let Outcome::NeedInput { mut requests, state } = page(None) else { panic!() };
        requests.push(question("who"));
        Outcome::NeedInput { requests, state }
    };
    for (asked, count) in [(ask("who"), 1), (with_a_form(), 2)] {
        let mut site = Site::new();
        let client = site.session("2025-11-25", BOTH);
        let x = site.post(json_only(&client), &call(1));
        let (responder, _) = site.handed();
        site.bench.answer(responder, asked);
        assert_eq!(site.said(x), [""; 0], "it waits until the client listens");
        let own = site.bare("GET", client.headers());
        let said = site.said(own);
        assert_eq!(said.iter().filter(|line| line.contains("elicitation/create")).count(), count, "{said:?}");
    }
}

// covers: ELIC-S-012, ELIC-S-013
#[test]
fn completion_goes_on_the_stream_of_the_request_while_it_runs() {
    let mut site = Site::new();
    let (client, other) = (site.session("2025-11-25", URLS), site.session("2025-11-25", URLS));
    let (own, foreign) = (site.bare("GET", client.headers()), site.bare("GET", other.headers()));
    site.said(own);
    site.said(foreign);
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.bench.answer(responder, page(Some("first")));
    let said = site.said(x);
    let crate::rpc::Message::Request(question) = message(event(&said[2]).1) else { panic!("{said:?}") };
    elicited(&mut site, "first");
    let said = site.said(x);
    assert!(said.len() == 1 && is_completion(&said[0], "first"), "{said:?}");
    site.post(client.headers(), &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept"}}}}"#, question.id));
    let (responder, _) = site.handed();
    site.bench.answer(responder, page(Some("second")));
    let said = site.said(x);
    let crate::rpc::Message::Request(question) = message(event(&said[0]).1) else { panic!("{said:?}") };
    site.post(client.headers(), &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept"}}}}"#, question.id));
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    site.said(x);
    elicited(&mut site, "second");
    let said = site.said(own);
    assert!(said.len() == 1 && is_completion(&said[0], "second"), "{said:?}");
    assert!(site.said(x).is_empty() && site.said(foreign).is_empty());
}

// covers: ELIC-S-033
#[test]
fn pages_end_with_their_session() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", URLS);
    site.post(json_only(&client), &call(1));
    let (responder, incoming) = site.handed();
    let id = incoming.elicitation_id("pay");
    site.bench.answer(responder, page(None));
    site.take();
    let x = site.bare("DELETE", client.headers());
    assert!(site.said(x)[0].starts_with("200"));
    elicited(&mut site, &id);
    site.codes();
    site.event();
    site.event();
    assert!(site.at_rest());
}
