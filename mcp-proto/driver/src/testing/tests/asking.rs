//! Handlers that ask, with the callbacks of a client that answer, on every revision and transport.

use super::{all_configs, offering, over_http, over_sse, text, web_socket};
use crate::ClientOptions;
use crate::testing::{Link, LinkOptions};
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::time::Duration;
use mcp_proto::client::Event;
use mcp_proto::model::roots::Root;
use mcp_proto::model::sampling::{SampleRequest, SampleResult, SamplingMessage, ToolResult, ToolUse};
use mcp_proto::server::ServerCommands;
use mcp_proto::{
    CallError, ClientConfig, ElicitResult, ErrorObject, Object, ProtocolVersion, Router, ToolError, UrlRequest,
    Versions, tool, tools,
};
use std::sync::Mutex;

/// Returns a configuration for each revision on each transport. 2024-11-05 has another one over
/// HTTP.
fn every_revision() -> impl Iterator<Item = (ProtocolVersion, ClientConfig)> {
    ProtocolVersion::ALL.into_iter().flat_map(|version| {
        let http = if version == ProtocolVersion::V2024_11_05 { over_sse() } else { over_http() };
        [ClientConfig::given(), http].into_iter().chain(web_socket()).map(move |mut config| {
            config.versions = Versions::new([version]);
            (version, config)
        })
    })
}

/// A server that asks a model about the weather in the first root. The model may use a tool.
fn weather() -> Router {
    offering().tool(tool("weather"), |cx, ()| {
        let roots = cx.roots("roots")?;
        let place = roots.first().and_then(|root| root.name.clone()).ok_or("no root")?;
        let mut request = SampleRequest::new(50).system("Be short.").user(format!("Weather in {place}?"));
        if cx.context().capabilities().samples_with_tools() {
            request = request.tool(tool("look"));
        }
        for round in 0..3 {
            let result = cx.sample(&format!("model{round}"), request.clone())?;
            let results: Vec<ToolResult> = result.uses().map(|used| ToolResult::text(used, "sunny")).collect();
            if results.is_empty() {
                return Ok(result.first_text().unwrap_or_default().to_string());
            }
            request = request.message(result.into_message()).message(SamplingMessage::results(results));
        }
        Err("the model uses tools without end".into())
    })
}

/// A model that uses each tool once.
fn model(request: &SampleRequest) -> SampleResult {
    let asked = request.messages.first().and_then(|message| message.content.first()).and_then(|block| block.as_text());
    match request.tools.as_ref().filter(|_| request.messages.len() == 1) {
        Some(tools) => SampleResult::tool_use("m", [ToolUse::new("u1", tools[0].name.as_str(), Object::new())]),
        None => SampleResult::text("m", format!("{} {}", asked.unwrap_or_default(), request.messages.len())),
    }
}

// covers: SAMP-C-001, SAMP-C-002, SAMP-S-008, ROOT-C-001
#[test]
fn one_handler_asks_a_model_on_every_revision() {
    for (version, config) in every_revision() {
        let root = || [Root::new("file:///home/ann").name("Paris")];
        let plain = ClientOptions::new().roots(root()).on_sample(|request| Ok(model(&request)));
        let with_tools = ClientOptions::new()
            .on_roots(move || async move { Ok(root().to_vec()) })
            .on_sample_with_tools(|request| async move { Ok(model(&request)) });
        for (client, messages) in [(plain, 1), (with_tools, if version.rules().sampling_tools { 3 } else { 1 })] {
            let mut link = Link::with(weather(), config.clone(), LinkOptions::new().client(client));
            let call = link.call(tools::call("weather")).expect("it is accepted");
            let expected = format!("Weather in Paris? {messages}");
            assert_eq!(text(link.wait(&call)).as_deref(), Ok(&*expected), "{version}: {}", link.log());
        }
    }
}

// covers: SAMP-C-016, X-33
#[test]
fn handler_learns_that_the_user_rejected_it() {
    for (version, config) in every_revision() {
        // `-1`: the user rejected it (2025-11-25 sampling, error handling).
        let client = ClientOptions::new()
            .roots([Root::new("file:///").name("Paris")])
            .on_sample_with_tools(|_| Err(ErrorObject::new(-1, "User rejected sampling request")));
        let mut link = Link::with(weather(), config, LinkOptions::new().client(client));
        let call = link.call(tools::call("weather")).expect("it is accepted");
        match (version.rules().era, link.wait(&call)) {
            // A modern client can only send no further request.
            (mcp_proto::Era::Modern, Err(CallError::Input(_))) => {}
            (mcp_proto::Era::Legacy, Ok(result)) => {
                assert!(result.is_error && result.first_text().unwrap().contains("User rejected"), "{result:?}");
            }
            (_, other) => panic!("{version}: {other:?}"),
        }
    }
}

/// The ids of the pages that the users have completed.
type Paid = Arc<Mutex<BTreeSet<String>>>;

/// A server whose tool needs that the user has paid on a web page.
fn shop(paid: &Paid) -> Router {
    let paid = Arc::clone(paid);
    offering().tool(tool("buy"), move |cx, ()| {
        // One user: the page of any request will do.
        if !paid.lock().unwrap().is_empty() {
            return Ok("bought");
        }
        let id = cx.elicitation_id("pay");
        match cx.elicit_url("pay", UrlRequest::new("Pay first", format!("https://pay.example/{id}")))? {
            ElicitResult::Accept(_) if paid.lock().unwrap().contains(&id) => Ok("bought"),
            ElicitResult::Accept(content) => {
                assert!(content.is_empty());
                Ok("call again when you have paid")
            }
            ElicitResult::Decline => Err(ToolError::from("declined")),
            ElicitResult::Cancel => Err("cancelled".into()),
        }
    })
}

/// Returns the id in the URL of a page.
fn id_of(page: &UrlRequest) -> String {
    page.url.rsplit('/').next().unwrap().into()
}

// covers: ELIC-C-021, ELIC-C-022, ELIC-S-004, X-08
#[test]
fn one_handler_shows_a_page_on_every_revision() {
    for (version, config) in every_revision() {
        for pays in [true, false] {
            let (paid, seen) = (Paid::default(), Paid::default());
            let (pay, see) = (Arc::clone(&paid), Arc::clone(&seen));
            let client = ClientOptions::new().on_elicit_url(move |page| {
                assert_eq!((page.host(), page.is_secure()), (Some("pay.example"), true));
                see.lock().unwrap().insert(id_of(&page));
                if pays {
                    pay.lock().unwrap().insert(id_of(&page));
                }
                ElicitResult::Accept(Object::new().with("card", "4711"))
            });
            let mut link = Link::with(shop(&paid), config.clone(), LinkOptions::new().client(client));
            let call = link.call(tools::call("buy")).expect("it is accepted");
            let outcome = link.wait(&call);
            match (version.rules().elicitation_modes, version.rules().era) {
                (true, _) => {
                    let expected = if pays { "bought" } else { "call again when you have paid" };
                    assert_eq!(text(outcome).as_deref(), Ok(expected), "{version}: {}", link.log());
                    assert_eq!(seen.lock().unwrap().len(), 1);
                }
                (false, _) => {
                    let result = outcome.expect("a result");
                    assert!(result.is_error, "{version}: {result:?}");
                    assert!(seen.lock().unwrap().is_empty());
                }
            }
        }
    }
}

// covers: ELIC-S-012, ELIC-S-013, ELIC-C-014
#[test]
fn completion_reaches_the_client_that_was_asked() {
    for mut config in all_configs() {
        config.versions = Versions::new([ProtocolVersion::V2025_11_25]);
        config.policy = mcp_proto::client::Policy::Auto;
        let (paid, pages) = (Paid::default(), Arc::new(Mutex::new(vec![])));
        let see = Arc::clone(&pages);
        let client = ClientOptions::new().on_elicit_url(move |page| {
            see.lock().unwrap().push(page);
            async { ElicitResult::Accept(Object::new()) }
        });
        let mut link = Link::with(shop(&paid), config, LinkOptions::new().client(client));
        let call = link.call(tools::call("buy")).expect("it is accepted");
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("call again when you have paid"));
        let id = id_of(&pages.lock().unwrap()[0]);
        link.events();
        link.with_server(|server, now| server.elicited(now, "unknown"));
        link.with_server(|server, now| server.elicited(now, &id));
        link.with_server(|server, now| server.elicited(now, &id));
        link.advance(Duration::from_secs(1));
        let events = link.events();
        assert_eq!(events.iter().filter(|event| **event == Event::Elicited(id.clone())).count(), 1, "{events:?}");
        assert!(!events.iter().any(|event| matches!(event, Event::Diagnostic(_))), "{events:?}");
    }
}
