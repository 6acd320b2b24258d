#![forbid(unsafe_code)]
//! The examples that serve and speak dialects, and that keep data for each session, run as their
//! programs do.

#[path = "../examples/sample_dialect/client.rs"]
mod client;
#[path = "../examples/sample_dialect/server.rs"]
mod server;
#[path = "../examples/session_data.rs"]
mod session_data;

use mcp_blocking::{ClientOptions, Policy, connect_with, tools};
use session_data::{Entry, SessionData};
use std::net::TcpListener;
use std::time::Duration;

// covers: S3-27, S3-33, S4-03
#[test]
fn sample_dialect_is_served_and_spoken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || server::serve(&listener));
    let mut client = client::SampleClient::connect(&url).unwrap();
    assert_eq!(client.call("count", &[("to", 3)]).unwrap(), ["1", "2", "3"]);
    assert_eq!(client.call("nonsense", &[]).unwrap_err().to_string(), "there is no such tool");
    assert_eq!(client.call("count", &[("to", 12)]).unwrap().len(), 12);
}

// covers: S3-41
#[test]
fn each_session_has_its_own_data_until_it_ends() {
    let data = SessionData::default();
    let server = session_data::serve(&data, "127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let connect = || {
        let options = ClientOptions::new().set(|config| config.policy = Policy::Legacy);
        connect_with(url.as_str(), options).unwrap()
    };
    let remember = |client: &mcp_blocking::Client, value: Option<&str>| {
        let entry = Entry { name: "color".into(), value: value.map(String::from) };
        let result = client.call(tools::call("remember").arguments(&entry)).unwrap();
        (result.is_error, result.first_text().unwrap().to_owned())
    };
    let (one, two) = (connect(), connect());
    assert_eq!(remember(&one, Some("red")), (false, "set".into()));
    assert_eq!(remember(&two, None), (true, "not set".into()));
    assert_eq!(remember(&two, Some("blue")), (false, "set".into()));
    assert_eq!(remember(&one, None), (false, "red".into()));
    assert_eq!(data.len(), 2);
    one.close();
    two.close();
    // Closing a client ends its session, with a DELETE.
    let over = std::time::Instant::now() + Duration::from_secs(30);
    while data.len() > 0 && std::time::Instant::now() < over {
        std::thread::yield_now();
    }
    assert_eq!(data.len(), 0, "nothing is left of an ended session");
    server.stop(Duration::ZERO);
}
