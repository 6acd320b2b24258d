//! The command `mcp`, as a new user types it: with servers of this project, dead ones, files with
//! errors, and a server that wants credentials.

mod doctors;
mod faults;
mod forms;
pub(crate) mod issuer;
mod lists;
mod logins;
mod noises;
mod peers;
mod secrets;

use mcp_tests::adapters::Adapter;
use mcp_tests::certificates::{Authority, Leaf};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const MCP: &str = env!("CARGO_BIN_EXE_mcp-command");
const TESTS: &str = env!("CARGO_BIN_EXE_mcp-tests");
/// Our server over stdio, as the last arguments of the command.
const STDIO: [&str; 5] = ["--", TESTS, "everything-server", "blocking", "--stdio"];

/// What the command printed, and its exit code.
struct Printed {
    code: i32,
    out: String,
    err: String,
}

/// Waits for the end of the command, which is killed after a time: a test fails rather than waits.
fn output_of(child: Child) -> Output {
    let (pid, (ends, ended)) = (child.id(), mpsc::channel::<()>());
    thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(300)) == Err(RecvTimeoutError::Timeout) {
            drop(Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
    });
    let output = child.wait_with_output().expect("mcp");
    drop(ends);
    output
}

/// Runs the command with these words. `STDIO` is replaced by our server over stdio.
fn run(words: &str) -> Printed {
    run_with(&words.split_whitespace().collect::<Vec<_>>(), "")
}

fn run_with(words: &[&str], input: &str) -> Printed {
    let mut command = Command::new(MCP);
    for word in words {
        match *word {
            "STDIO" => command.args(STDIO),
            word => command.arg(word),
        };
    }
    // The logins of this user are not those of a test.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("mcp");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may have ended before it reads.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    let Output { status, stdout, stderr } = output_of(child);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Printed { code: status.code().expect("an exit code"), out: text(stdout), err: text(stderr) }
}

impl Printed {
    #[track_caller]
    fn is(self, code: i32, out: &[&str], err: &[&str]) {
        let Self { code: found, out: printed, err: told } = &self;
        assert_eq!(*found, code, "{printed}\n{told}");
        out.iter().for_each(|text| assert!(printed.contains(text), "{text:?} is not in {printed}"));
        err.iter().for_each(|text| assert!(told.contains(text), "{text:?} is not in {told}"));
    }
}

/// A server over HTTP, in a process of its own.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn new() -> Self {
        let mut child = Command::new(TESTS)
            .args(["everything-server", "blocking", "--http", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("LISTENING ").expect("an address");
        let url = format!("http://{address}/mcp");
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A file that is removed in the end.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str, text: &str) -> Self {
        let path = env::temp_dir().join(format!("mcp-command-{name}-{}", std::process::id()));
        fs::write(&path, text).expect("written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("unicode")
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[test]
fn list_shows_what_a_server_offers() {
    let names = ["everything-server 0.1.0, revision 2026-07-28", "tools: 35", "  test_custom_header(value: string)"];
    run("list STDIO").is(0, &names, &[]);
    let served = Served::new();
    let listed = run_with(&["list", &served.url, "prompts", "--revision", "2025-06-18"], "");
    assert!(!listed.out.contains("tools"), "{}", listed.out);
    listed.is(0, &["revision 2025-06-18", "  test_prompt_with_arguments(arg1, arg2)"], &[]);
    let described =
        r#"{"server":{"name":"everything-server","version":"0.1.0"},"revision":"2026-07-28","resourceTemplates":[{"#;
    run("list templates --json STDIO").is(0, &[described, "test://template/{id}/data"], &[]);
    run("list tool STDIO").is(2, &[], &["`tool` is no kind: tools, resources, templates or prompts"]);
}

#[test]
fn call_prints_the_result_and_reports_progress() {
    run("call test_simple_text STDIO").is(0, &["This is a simple text response for testing.\n"], &[]);
    run("call test_tool_with_progress STDIO").is(0, &["Done"], &["progress   0 %", "progress 100 %\n"]);
    run("call test_error_handling STDIO").is(1, &["intentionally returns an error"], &["the tool reports an error"]);
    run("call test_custom_header --json value=a=b STDIO").is(0, &[r#"{"content":[{"type":"text""#], &[]);
    run("call test_image_content STDIO").is(0, &["[image/png, "], &[]);
    let words = ["call", "test_custom_header", "-", "STDIO"];
    run_with(&words, "{\n  \"value\": \"x\"\n}").is(0, &["x"], &[]);
}

#[test]
fn wrong_argument_is_named_before_anything_is_called() {
    run("call test_custom_header STDIO").is(2, &[], &["needs the argument `value`: value: string"]);
    run("call test_custom_header {\"value\":7} STDIO").is(2, &[], &["the argument `value` does not fit the tool"]);
    run("call test_custom_header value STDIO").is(2, &[], &["`value` is no argument: key=value"]);
    run("call no_such_tool STDIO").is(
        2,
        &[],
        &["the server has no tool no_such_tool; its tools: ", "test_simple_text"],
    );
    run("call STDIO").is(2, &[], &["TOOL is missing"]);
    run("list").is(2, &[], &["TARGET is missing"]);
    run("list files").is(2, &[], &["files is no URL of a server", "a program goes after --: mcp list -- files"]);
    run("list --revision 1999-01-01 STDIO").is(2, &[], &["--revision 1999-01-01 is unknown", "2026-07-28"]);
    run("list --header Name STDIO").is(2, &[], &["--header is written as 'Name: value'"]);
    run("frobnicate").is(2, &[], &["unrecognized subcommand"]);
}

#[test]
fn resources_prompts_and_completions_are_read() {
    run("read test://static-text STDIO").is(0, &["the content of the static text resource"], &[]);
    run("read test://no-such STDIO").is(1, &[], &["mcp: resources/read test://no-such: "]);
    let image = Command::new(MCP)
        .args(["read", "test://static-binary"])
        .args(STDIO)
        .stderr(Stdio::null())
        .output()
        .expect("mcp");
    assert!(image.status.success() && image.stdout.starts_with(b"\x89PNG"));
    let prompt = run("prompt test_prompt_with_arguments arg1=one arg2=two STDIO");
    prompt.is(0, &["user:\nPrompt with arguments: arg1='one', arg2='two'\n"], &[]);
    run("prompt test_simple_prompt one STDIO").is(2, &[], &["`one` is no argument: key=value"]);
    run("complete test_prompt_with_arguments arg1 pari STDIO").is(0, &["paris\n"], &[]);
}

#[test]
fn question_without_a_terminal_is_dismissed() {
    let asked = run("call test_elicitation message=Who? STDIO");
    asked.is(0, &["action=cancel"], &["The server asks: Who?", "Standard input is no terminal"]);
}

// covers: SEC-C-009
#[test]
fn command_of_a_file_needs_a_confirmation() {
    let marker = env::temp_dir().join(format!("mcp-command-started-{}", std::process::id()));
    let text = format!(
        r#"{{"mcpServers": {{
            "everything": {{"command": "{TESTS}", "args": ["everything-server", "blocking", "--stdio"], "env": {{"SECRET": "${{HOME}}"}}}},
            "evil": {{"command": "touch", "args": ["{}", "${{HOME}}"], "env": {{"LD_PRELOAD": "./x.so"}}}},
            "steals": {{"url": "http://127.0.0.1:1/", "headers": {{"X-A": "${{HOME}}"}}}},
            "broken": {{"command": 7}}
        }}}}"#,
        marker.display()
    );
    let file = Temp::new("file", &text);
    let shown = [r#"server "everything""#, &format!("program {TESTS:?}"), r#"argument "--stdio""#, "SECRET", "--yes"];
    run_with(&["list", "--config", file.path(), "everything"], "").is(2, &[], &shown);
    let usual = " usual variables of this environment (--verbose names them)";
    run_with(&["list", "--config", file.path(), "everything"], "").is(2, &[], &[usual]);
    run_with(&["list", "--verbose", "--config", file.path(), "everything"], "").is(2, &[], &["inherits ", "HOME, "]);
    // Texts are shown as written: no value of a variable reaches a log.
    let evil = ["argument \"${HOME}\"", "sets \"LD_PRELOAD\" to \"./x.so\"", "this needs a confirmation"];
    run_with(&["list", "--config", file.path(), "evil"], "y\n").is(2, &[], &evil);
    assert!(!marker.exists(), "it was started");
    let steals = ["url http://127.0.0.1:1/", "header field \"X-A\": \"${HOME}\"", "gets the variable \"HOME\""];
    run_with(&["list", "--config", file.path(), "steals"], "").is(2, &[], &steals);
    run_with(&["list", "--config", file.path(), "everything", "--yes"], "").is(0, &["tools: 35"], &[]);
    run_with(&["list", "--config", file.path(), "broken"], "").is(
        2,
        &[],
        &["line 5, column 35, mcpServers.broken.command"],
    );
    let unknown = run_with(&["list", "--config", file.path(), "nothing"], "");
    unknown.is(2, &[], &["has no server nothing; its servers: everything, evil, steals, broken"]);
    let file = Temp::new("syntax", "{\"mcpServers\": {\n  \"a\" {}}}");
    run_with(&["list", "--config", file.path(), "a"], "").is(2, &[], &["line 2, column 7"]);
}

#[test]
fn inspect_shows_messages_and_obeys_commands() {
    let recording = Temp::new("recording", "");
    let commands = "call test_simple_text\nbogus\nread test://static-text\nquit\n";
    let shown = run_with(&["inspect", "--record", recording.path(), "STDIO"], commands);
    let messages = ["--> request 1 server/discover", "<-- response 1 server/discover, ", "--> request 3 tools/call"];
    // The last failure decides.
    shown.is(
        2,
        &["This is a simple text response for testing."],
        &[&messages[..], &["`bogus` is no command"]].concat(),
    );
    run_with(&["inspect", "STDIO"], "call test_error_handling\nping\n").is(1, &[], &["closed"]);
    let replayed = Command::new(TESTS).args(["replay", recording.path()]).output().expect("replay");
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stdout));
}

#[test]
fn doctor_tries_each_revision_and_transport() {
    let served = Served::new();
    let found = run_with(&["doctor", &served.url], "");
    let lines =
        ["ok    connect", "tools: 35, resources: 5", "ok    Streamable HTTP", "no    HTTP+SSE", "ok    2024-11-05"];
    found.is(0, &lines, &[]);
    run("doctor --jsno STDIO").is(2, &[], &["unexpected argument '--jsno'"]);
    // A server that answers, and writes what is no message.
    let script = format!("echo junk; exec {TESTS} everything-server blocking --stdio");
    run_with(&["doctor", "--", "/bin/sh", "-c", &script], "").is(1, &["ok    connect", "FAIL  protocol"], &[]);
    run("doctor -- /no/such/program").is(3, &["FAIL  connect", "is the command installed, and in PATH?"], &[]);
    let talks = "echo this goes to standard error >&2; exit 7";
    let found = run_with(&["doctor", "--", "/bin/sh", "-c", talks], "");
    found.is(3, &["FAIL  connect", "exit 7", "standard error ends with\n         this goes to standard error"], &[]);
}

/// Returns a pseudo-terminal: the end of the user, and that of a program.
fn terminal() -> (fs::File, fs::File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&user).expect("granted");
    unlockpt(&user).expect("unlocked");
    let name = ptsname(&user, Vec::new()).expect("a name").into_string().expect("unicode");
    let program = fs::OpenOptions::new().read(true).write(true).open(&name).expect("opened");
    (fs::File::from(user), program)
}

/// Runs the command on a pseudo-terminal, where a user types these lines. Returns what the terminal
/// shows of its questions and results.
fn on_terminal(words: &[&str], typed: &str) -> (i32, String) {
    // The end of the user stays open until the command has ended: its loss would end the input.
    let (mut user, program) = terminal();
    let mut command = Command::new(MCP);
    command.args(words).args(STDIO).stdin(program).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("mcp");
    user.write_all(typed.as_bytes()).expect("typed");
    let output = output_of(child);
    let shown = [output.stderr, output.stdout].concat();
    (output.status.code().expect("an exit code"), String::from_utf8(shown).expect("text"))
}

#[test]
fn question_is_answered_on_the_terminal() {
    let (code, shown) = on_terminal(&["call", "test_elicitation", "message=Who?"], "Ann\nann@example.com\n");
    assert!(shown.contains("The server asks: Who?") && shown.contains("action=accept"), "{shown}");
    assert_eq!(code, 0);
    let (_, shown) = on_terminal(&["call", "test_elicitation", "message=Who?"], "!\n");
    assert!(shown.contains("action=decline"), "{shown}");
    // A question that a command of `inspect` causes is read between the commands.
    let typed = "call test_elicitation message=Who?\nAnn\nann@example.com\ncall test_simple_text\nquit\n";
    let (code, shown) = on_terminal(&["inspect"], typed);
    assert!(shown.contains("action=accept") && shown.contains("This is a simple text response"), "{shown}");
    assert_eq!(code, 0);
}

/// Types this at the question for a password. Returns the output of the command, and whether the
/// terminal then shows again what is typed. It may not have shown the password.
fn at_password(typed: &[u8]) -> (Output, bool) {
    let script =
        r#"[ "$KEY" = hunter2 ] && exec "$0" everything-server blocking --stdio; echo "the key is $KEY" >&2; exit 9"#;
    let script = serde_json::to_string(script).expect("JSON");
    let input = r#"{"type": "promptString", "id": "key", "description": "API key", "password": true}"#;
    let server =
        format!(r#"{{"command": "/bin/sh", "args": ["-c", {script}, "{TESTS}"], "env": {{"KEY": "${{input:key}}"}}}}"#);
    let file = Temp::new("input", &format!(r#"{{"inputs": [{input}], "servers": {{"s": {server}}}}}"#));
    let (user, program) = terminal();
    let mut command = Command::new("setsid");
    // The terminal becomes that of the session: a password is read from there.
    command.args(["--ctty", "--wait", MCP, "list", "--yes", "--config", file.path(), "s"]);
    command.stdin(program.try_clone().expect("a copy")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("mcp");
    let shows = || tcgetattr(&program).expect("a terminal").local_modes.contains(LocalModes::ECHO);
    let deadline = Instant::now() + Duration::from_secs(60);
    while shows() {
        assert!(Instant::now() < deadline, "the terminal goes on showing what is typed");
        thread::yield_now();
    }
    (&user).write_all(typed).expect("typed");
    let output = output_of(child);
    fcntl_setfl(&user, OFlags::NONBLOCK).expect("a mode");
    let mut shown = Vec::new();
    // It ends with an error, since nothing else is there.
    let _ = (&user).read_to_end(&mut shown);
    assert!(!String::from_utf8_lossy(&shown).contains("hunter2"), "{shown:?}");
    (output, shows())
}

#[test]
fn password_of_a_file_is_not_shown() {
    let (output, shows_again) = at_password(b"hunter2\n");
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), shows_again), (Some(0), true), "{told}");
    assert!(told.contains("API key: "), "{told}");
    // Ctrl-C leaves a terminal that shows what is typed.
    let (output, shows_again) = at_password(b"hun\x03");
    assert_eq!((output.status.code(), shows_again), (Some(130), true), "{output:?}");
}

#[test]
fn reader_of_the_output_may_leave() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(MCP);
    command.arg("list").args(STDIO).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let output = command.output().expect("mcp");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    // The messages of `inspect` go to standard error.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(MCP);
    command.arg("inspect").args(STDIO).stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer);
    assert_eq!(command.status().expect("mcp").code(), Some(0));
}

#[test]
fn header_of_the_command_line_replaces_that_of_the_file() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let heads = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut head = [0; 4096];
        let len = stream.read(&mut head).expect("a head");
        drop(stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        String::from_utf8_lossy(&head[..len]).to_ascii_lowercase()
    });
    let text = format!(
        r#"{{"mcpServers": {{"a": {{"url": "http://{address}/", "headers": {{"Authorization": "Bearer old", "X-A": "1"}}}}}}}}"#
    );
    let file = Temp::new("header", &text);
    let words = ["list", "--config", file.path(), "a", "--header", "authorization: Bearer new"];
    run_with(&words, "").is(3, &[], &["HTTP 401"]);
    let head = heads.join().expect("no panic");
    assert!(head.contains("authorization: bearer new") && head.contains("x-a: 1") && !head.contains("old"), "{head}");
}

#[test]
fn file_of_gemini_cli_has_bare_variables() {
    let text = format!(
        r#"{{"mcpServers": {{"a": {{"command": "{TESTS}", "args": ["everything-server", "blocking", "$FLAG"]}}}}}}"#
    );
    let file = Temp::new("gemini", &text);
    let of = |gemini: &[&str]| {
        let mut command = Command::new(MCP);
        command.args(["list", "--yes", "--config", file.path(), "a"]).args(gemini).env("FLAG", "--stdio");
        command.stdin(Stdio::null()).output().expect("mcp").status.success()
    };
    assert!(of(&["--gemini"]) && !of(&[]));
}

#[test]
fn timeout_is_that_of_the_file_unless_one_is_given() {
    let script = r#"while read -r line; do case $line in
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
        esac; done"#;
    let script = serde_json::to_string(script).expect("JSON");
    let text =
        format!(r#"{{"mcpServers": {{"mute": {{"command": "/bin/sh", "args": ["-c", {script}], "timeout": 100}}}}}}"#);
    let file = Temp::new("mute", &text);
    let words = ["list", "--config", file.path(), "mute", "--yes", "--revision", "2025-06-18"];
    run_with(&words, "").is(4, &[], &["100 ms"]);
    run_with(&[&words[..], &["--timeout", "0.2"]].concat(), "").is(4, &[], &["200 ms"]);
    let unnamed = run_with(&["list", "--config", file.path()], "");
    unnamed.is(2, &[], &["TARGET is missing: the name of a server of the file; its servers: mute"]);
}

/// Answers each connection with this response.
fn answering(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                drop(stream.write_all(response.as_bytes()));
            });
        }
    });
    format!("http://{address}/mcp")
}

#[test]
fn dead_server_refusal_and_bad_certificate_say_what_to_do() {
    run("list http://127.0.0.1:1/mcp").is(3, &[], &["the connection was refused", "is the server running?"]);
    let locked = answering(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    let login = format!("log in: mcp login {locked}\n");
    run_with(&["list", &locked], "").is(7, &[], &[&login, "--header 'Authorization: Bearer TOKEN'"]);
    let given = ["list", &locked, "--header", "Authorization: Bearer old"];
    let advice = ["HTTP 401 [WWW-Authenticate: Bearer realm=", "the server does not accept these credentials"];
    run_with(&given, "").is(3, &[], &advice);
    let missing = answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    run_with(&["list", &missing], "").is(3, &[], &["HTTP 404", "no MCP server at this path"]);
    // Nothing accepts.
    let silent = TcpListener::bind("127.0.0.1:0").expect("listens");
    let url = format!("http://{}/mcp", silent.local_addr().expect("an address"));
    run_with(&["list", &url, "--connect-timeout", "0.2"], "").is(4, &[], &["mcp: cannot connect: ", "`mcp doctor`"]);
}

#[test]
fn certificate_of_an_unknown_authority_is_refused() {
    let authority = Authority::new("of this test");
    let router = mcp_proto::Router::new("secured", "1.0");
    let server =
        Adapter::Blocking.serve_https(router, "127.0.0.1:0", authority.server(&Leaf::default())).expect("listens");
    let url = format!("https://{}/mcp", server.address());
    let advice = ["issued by an authority that this system trusts"];
    run_with(&["list", &url], "").is(3, &[], &advice);
}

#[test]
fn completions_and_man_page_are_generated() {
    // For the name of the program, which here is another one.
    run("completions bash").is(0, &["_mcp__command()", "inspect"], &[]);
    run("completions zsh").is(0, &["#compdef mcp-command"], &[]);
    run("man").is(0, &[".TH mcp 1", "Look at a Model Context Protocol server"], &[]);
    run("man call").is(0, &[".TH mcp-call 1", "\\-\\-config", "\\-\\-json"], &[]);
    run("man frobnicate").is(2, &[], &["`frobnicate` is no command"]);
}
