//! Small peers of the command: a scripted program, and a server over HTTP and WebSockets.

use mcp_tests::stub::{Ask, EVENTS, Step, Stub, good_legacy, json, say};

/// The result of `initialize` with these capabilities, as a member of a response.
pub(super) fn initialized(capabilities: &str) -> String {
    format!(
        r#""result":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"peer","version":"7"}}}}"#
    )
}

/// Returns a program for `/bin/sh` that answers these methods with these members of a response, and
/// any other request with -32601. `before` runs first. An answer that begins with `!` is a command.
pub(super) fn script(before: &str, answers: &[(&str, &str)]) -> String {
    let mut cases = String::new();
    for (method, answer) in answers {
        let command = match answer.strip_prefix('!') {
            Some(command) => command.to_owned(),
            None => format!(r#"printf '{{"jsonrpc":"2.0","id":%s,{}}}\n' "$id""#, answer.replace('%', "%%")),
        };
        cases.push_str(&format!("*'\"method\":\"{method}\"'*) {command};;\n"));
    }
    let unknown = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id""#;
    format!(
        "{before}\nwhile read -r line; do id=${{line#*'\"id\":'}}; id=${{id%%,*}}; id=${{id%%\\}}*}}; case $line in\n\
         {cases}*'\"id\":'*) {unknown};;\nesac; done"
    )
}

/// Returns such a program of 2025-06-18 with these capabilities.
pub(super) fn legacy(capabilities: &str, answers: &[(&str, &str)]) -> String {
    let initialized = initialized(capabilities);
    let answers: Vec<_> = [("initialize", initialized.as_str())].into_iter().chain(answers.iter().copied()).collect();
    script("", &answers)
}

/// Returns the words of a command whose target is this program.
pub(super) fn with<'a>(words: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [words, &["--", "/bin/sh", "-c", script]].concat()
}

/// A list with one tool.
pub(super) const ECHO: &str = r#""result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;

/// The text of a large result.
pub(super) fn large() -> String {
    "x".repeat(100_000)
}

/// Starts a server of 2025-11-25 with the tool `big`, whose result is a JSON body, or an event of a
/// stream.
pub(super) fn large_over_http(streams: bool) -> Stub {
    let script = move |ask: &Ask| -> Vec<Step> {
        match ask.what.as_str() {
            "tools/list" => vec![json(
                r#"{"jsonrpc":"2.0","id":{id},"result":{"tools":[{"name":"big","inputSchema":{"type":"object"}}]}}"#,
            )],
            "tools/call big" => {
                let start = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":""#;
                let message = format!(r#"{start}{}"}}]}}}}"#, large());
                match streams {
                    true => vec![say(EVENTS), say(format!("data: {message}\n\n")), Step::Close],
                    false => vec![json(message)],
                }
            }
            _ => good_legacy(ask),
        }
    };
    Stub::start(script).expect("it listens")
}
