//! `mcp login` and `mcp logout`, and the other commands with and without a login.

use super::issuer::{CANARY, Issuer, Setup, get, query, redirect};
use super::{MCP, Printed, STDIO, output_of, run, terminal};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// The folder of the logins of a test. It is removed in the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("mcp-command-login-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).expect("created");
        Self(path)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(MCP);
        command.args(words).env("XDG_STATE_HOME", &self.0).env("HOME", &self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command without a user.
    fn run(&self, words: &[&str]) -> Printed {
        printed(output_of(self.command(words).spawn().expect("mcp")), String::new())
    }

    /// Lets the tokens of all logins expire.
    fn expire(&self) {
        let folder = fs::read_dir(self.0.join("mcp/auth/mcp")).expect("a folder");
        for file in folder.map(|file| file.expect("a file").path()).filter(|path| path.extension().is_none()) {
            let mut record: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
            for entry in record["entries"].as_array_mut().expect("entries") {
                entry["tokens"]["expires"] = 1.into();
            }
            fs::write(&file, record.to_string()).expect("written");
        }
    }

    /// Logs in with these options, and a browser that gets to the listener.
    fn login(&self, words: &[&str]) -> Printed {
        Login::begin(self.command(&[&["login", "--no-browser"], words].concat())).arrives()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns what a command printed, which has no secret.
fn printed(output: Output, before: String) -> Printed {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (out, err) = (text(output.stdout), before + &text(output.stderr));
    assert!(!out.contains(CANARY) && !err.contains(CANARY), "{out}\n{err}");
    Printed { code: output.status.code().expect("an exit code"), out, err }
}

/// A login whose page is shown.
struct Login {
    child: Child,
    stderr: BufReader<ChildStderr>,
    told: String,
    page: String,
}

impl Login {
    fn begin(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("mcp");
        let (mut stderr, mut told) = (BufReader::new(child.stderr.take().expect("a pipe")), String::new());
        let page = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).expect("text") > 0, "no page is shown: {told}");
            told.push_str(&line);
            if line.starts_with("http") {
                break line.trim().to_owned();
            }
        };
        Self { child, stderr, told, page }
    }

    /// A line of its standard input.
    fn types(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().expect("a pipe"), "{line}").expect("it reads");
    }

    /// The browser arrives at the listener. Returns what the command printed.
    fn arrives(self) -> Printed {
        let response = get(&redirect(&self.page));
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        self.ends()
    }

    fn ends(mut self) -> Printed {
        let stdin = self.child.stdin.take();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("text");
        let printed = printed(output_of(self.child), self.told + &rest);
        drop(stdin);
        printed
    }
}

// covers: B-248, S0-47
#[test]
fn login_is_stored_for_all_commands_until_a_logout() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("all"));
    let url = issuer.url();
    let line = format!("log in: mcp login {url}");
    let missing = [line.as_str(), "or give a token: --header 'Authorization: Bearer TOKEN'"];
    home.run(&["list", &url]).is(7, &[], &missing);
    let json = home.run(&["list", "--json", &url]);
    json.is(7, &[r#""kind":"login""#, r#""exitCode":7"#], &[]);
    home.run(&["doctor", &url]).is(7, &["FAIL  connect", "no    login            none is stored", &line], &[]);
    assert_eq!(issuer.asked("POST /register").len(), 0, "nothing begins a login by itself");

    let shown = format!("Log in at {} for files:read.", issuer.origin);
    let login = format!("logged in at {} for files:read: expires in ", issuer.origin);
    home.login(&[&url]).is(0, &[&login, ", and is renewed\n", "stored in "], &[&shown]);
    home.run(&["list", &url]).is(0, &["tools: 1"], &[]);
    home.run(&["doctor", &url]).is(0, &["ok    login            at http://127.0.0.1:"], &[]);
    assert_eq!(issuer.asked("POST /token").len(), 1);

    home.run(&["logout", &url]).is(0, &["logged out, and the tokens are revoked\n"], &[]);
    assert!(!issuer.asked("POST /revoke").is_empty());
    home.run(&["logout", &url]).is(0, &["no login is stored for http://127.0.0.1:"], &[]);
    home.run(&["list", &url]).is(7, &[], &[&line]);
}

// covers: AUTHS-C-017
#[test]
fn inspect_shows_and_records_no_secret_of_a_login() {
    let (issuer, home) = (Issuer::start(Setup { is_fickle: true, ..Setup::default() }), Home::new("inspect"));
    let url = issuer.url();
    home.login(&[&url]).is(0, &["logged in at "], &[]);
    let recording = home.0.join("recording");
    let mut command = home.command(&["inspect", "--full", "--record", recording.to_str().expect("text"), &url]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("mcp");
    child.stdin.take().expect("a pipe").write_all(b"tools\nquit\n").expect("it reads");
    let inspected = printed(output_of(child), String::new());
    inspected.is(0, &["echo"], &["--> request", "tools/list"]);
    let recorded = fs::read_to_string(&recording).expect("text");
    assert!(recorded.contains("grant_type=refresh_token") && !recorded.contains(CANARY), "{recorded}");
    let refreshed = issuer.asked("POST /token");
    assert!(refreshed.last().is_some_and(|ask| ask.contains("refresh_token=canary-refresh")), "{refreshed:?}");
}

#[test]
fn doctor_shows_the_way_to_the_authorization_server() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("doctor"));
    let (url, origin) = (issuer.url(), issuer.origin.clone());
    let document = |path: &str| format!("ok    document         {origin}/.well-known/{path}\n");
    let (resource, metadata) = (document("oauth-protected-resource/mcp"), document("oauth-authorization-server"));
    let named = format!("ok    issuer           {origin}\n");
    let offers = [
        "ok    challenge        Bearer resource_metadata=\"http://",
        &resource,
        &metadata,
        &named,
        "ok    registration     dynamic\n",
        "ok    authentication   none\n",
        "ok    PKCE             S256\n",
        "ok    device login     offered\n",
        "no    DPoP             not offered; the server does not ask for it\n",
        "ok    scopes           files:read files:write; at the issuer: none listed\n",
    ];
    home.run(&["doctor", &url]).is(7, &offers, &[]);
    assert!(["POST /register", "GET /authorize", "POST /token"].iter().all(|line| issuer.asked(line).is_empty()));
    home.login(&[&url]).is(0, &["logged in at "], &[]);
    let with_login = home.run(&["doctor", "--json", &url]);
    with_login.is(0, &[&format!(r#""what":"issuer","text":"{origin}""#), "expires in "], &[]);
    let other = home.run(&["doctor", &url, "--account", "b", "--issuer", "http://127.0.0.1:1"]);
    other.is(7, &["no    document         http://127.0.0.1:1/.well-known/", "FAIL  issuer"], &[]);
    let closed = Issuer::start(Setup { registers_none: true, ..Setup::default() });
    let none = "no    registration     none: it needs a client of yours (--client-id)\n";
    home.run(&["doctor", &closed.url()]).is(7, &[none], &[]);
}

// covers: S0-06
#[test]
fn login_of_a_configuration_file_is_used() {
    let (issuer, home) = (Issuer::start(Setup { registers_none: true, ..Setup::default() }), Home::new("file"));
    let (file, url) = (home.0.join("mcp.json"), issuer.url());
    let auth = r#"{"CLIENT_ID": "mine", "CLIENT_SECRET": "${env:MCP_TEST_SECRET}", "scopes": ["files:write"]}"#;
    let text = format!(r#"{{"mcpServers": {{"a": {{"url": "{url}", "auth": {auth}}}}}}}"#);
    fs::write(&file, text).expect("written");
    let words = ["--yes", "--config", file.to_str().expect("unicode"), "a"];
    let command = |words: &[&str]| {
        let mut command = home.command(words);
        command.env("MCP_TEST_SECRET", format!("{CANARY}-secret"));
        command
    };
    let login = Login::begin(command(&[&["login", "--no-browser"], &words[..]].concat()));
    assert_eq!(
        (query(&login.page, "client_id").as_str(), query(&login.page, "scope").as_str()),
        ("mine", "files%3Aread+files%3Awrite")
    );
    login.arrives().is(0, &["logged in at "], &[]);
    // `mine:canary-secret` in Base64.
    assert!(issuer.asked("POST /token")[0].contains("authorization: basic bwluztpjyw5hcnktc2vjcmv0"));
    let list = printed(output_of(command(&[&["list"], &words[..]].concat()).spawn().expect("mcp")), String::new());
    list.is(0, &["tools: 1"], &[]);
    home.run(&[&["list"], &words[..]].concat()).is(2, &[], &["MCP_TEST_SECRET"]);
}

#[test]
fn url_of_the_redirect_is_read_from_standard_input() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("paste"));
    let mut login = Login::begin(home.command(&["login", "--no-browser", &issuer.url()]));
    let returned = redirect(&login.page);
    login.types("https://example.com/");
    login.types(&returned);
    let told = format!("That is another URL: it begins with {}", returned.split('?').next().expect("a URL"));
    login.ends().is(0, &["logged in at "], &[&told]);
}

#[test]
fn server_without_a_challenge_is_logged_in_to_on_request() {
    let (issuer, home) = (Issuer::start(Setup { is_open: true, ..Setup::default() }), Home::new("open"));
    home.run(&["list", &issuer.url()]).is(0, &["tools: 1"], &[]);
    let login = home.login(&["--scope", "more", &issuer.url()]);
    login.is(0, &["logged in at "], &["Log in at ", "more"]);
    // Another one replaces it.
    home.login(&[&issuer.url()]).is(0, &["logged in at "], &[]);
    assert_eq!(issuer.asked("POST /token").len(), 2);
}

#[test]
fn command_on_a_terminal_shows_the_page_by_itself() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("terminal"));
    let (user, program) = terminal();
    let mut command = home.command(&["list", &issuer.url()]);
    // There is no browser.
    command.env("PATH", "/nonexistent").stdin(program.try_clone().expect("a copy")).stderr(program);
    let child = command.spawn().expect("mcp");
    let mut shown = BufReader::new(user).lines().map_while(Result::ok);
    let page = shown.find(|line| line.starts_with("http")).expect("a page");
    assert!(get(&redirect(page.trim())).starts_with("HTTP/1.1 200 "));
    let output = output_of(child);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("tools: 1"), "{output:?}");
}

#[test]
fn each_account_has_a_login_of_its_own() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("account"));
    let url = issuer.url();
    home.login(&["--account", "work", &url]).is(0, &["logged in at "], &[]);
    home.run(&["list", "--account", "work", &url]).is(0, &["tools: 1"], &[]);
    let hint = format!("log in: mcp login {url} --account 'at home'");
    home.run(&["list", "--account", "at home", &url]).is(7, &[], &[&hint]);
    home.run(&["list", &url]).is(7, &[], &[&format!("log in: mcp login {url}\n")]);
}

// The secret goes to the issuer that was named with it, and nowhere else.
#[test]
fn given_client_is_used_at_its_issuer_only() {
    let (issuer, home) = (Issuer::start(Setup { registers_none: true, ..Setup::default() }), Home::new("given"));
    let (url, origin) = (issuer.url(), issuer.origin.clone());
    let needed = format!("mcp login {url} --issuer {origin} --client-id ID");
    home.run(&["login", &url]).is(7, &[], &["offers no registration", &needed]);
    home.run(&["login", "--client-id", "mine", &url]).is(2, &[], &["--issuer"]);
    let client = ["--client-id", "mine", "--client-secret-env", "MCP_TEST_SECRET", "--issuer"];
    let of = |issuer: &str| {
        let mut command = home.command(&[&["login", "--no-browser"], &client[..], &[issuer, &url]].concat());
        command.env("MCP_TEST_SECRET", format!("{CANARY}-secret"));
        command
    };
    let line = format!("log in: mcp login {url} --issuer {origin} --client-id mine\n");
    home.run(&["list", "--issuer", &origin, "--client-id", "mine", &url]).is(7, &[], &[&line]);
    let other = printed(output_of(of("http://127.0.0.1:1").spawn().expect("mcp")), String::new());
    other.is(3, &[], &["http://127.0.0.1:1/.well-known/oauth-authorization-server: the connection was refused"]);
    assert!(issuer.asked("GET /authorize").is_empty() && issuer.asked("POST /token").is_empty());
    Login::begin(of(&origin)).arrives().is(0, &["logged in at "], &[]);
    // `mine:canary-secret` in Base64.
    let basic = "authorization: basic bwluztpjyw5hcnktc2vjcmv0";
    assert!(issuer.asked("POST /token").iter().all(|ask| ask.contains(basic)), "{:?}", issuer.asked("POST /token"));
    home.run(&["list", &url]).is(0, &["tools: 1"], &[]);
    let missing = home.run(&[&["login"], &client[..], &[&origin, &url]].concat());
    missing.is(2, &[], &["the environment has no variable MCP_TEST_SECRET"]);
}

#[test]
fn program_logs_in_without_a_user_in_every_command() {
    let (issuer, home) = (Issuer::start(Setup { registers_none: true, ..Setup::default() }), Home::new("machine"));
    let (url, origin) = (issuer.url(), issuer.origin.clone());
    let words =
        ["--machine", "--client-id", "mine", "--client-secret-env", "MCP_TEST_SECRET", "--issuer", &origin, &url];
    let run = |command: &str| {
        let mut command = home.command(&[&[command], &words[..]].concat());
        command.env("MCP_TEST_SECRET", format!("{CANARY}-secret"));
        printed(output_of(command.spawn().expect("mcp")), String::new())
    };
    let renewed = "with the same options they also renew it";
    run("login").is(0, &["logged in at ", " for files:read: expires in "], &[renewed]);
    let asked = issuer.asked("POST /token");
    assert!(asked.len() == 1 && asked[0].contains("grant_type=client_credentials"), "{asked:?}");
    assert!(issuer.asked("GET /authorize").is_empty());
    home.run(&["list", &url]).is(0, &["tools: 1"], &[]);
    run("list").is(0, &["tools: 1"], &[]);
    assert_eq!(issuer.asked("POST /token").len(), 1, "the token of the login is in use");
    home.expire();
    run("list").is(0, &["tools: 1"], &[]);
    assert_eq!(issuer.asked("POST /token").len(), 2);
    home.run(&["login", "--machine", &url]).is(2, &[], &["--client-secret-env", "--client-key"]);
    home.run(&["login", "--machine", "--device", &url]).is(2, &[], &["--device"]);
    let own = [&["list"], &words[..], &["--header", "Authorization: Bearer x"]].concat();
    home.run(&own).is(2, &[], &["exclude each other"]);
    home.run(&[&["list"], &words[..7], &STDIO[..]].concat()).is(2, &[], &["a program has no login"]);
}

#[test]
fn program_logs_in_with_its_key_or_an_assertion() {
    let (issuer, home) = (Issuer::start(Setup { registers_none: true, ..Setup::default() }), Home::new("key"));
    let (url, file) = (issuer.url(), home.0.join("credential"));
    let path = file.to_str().expect("unicode");
    let pair = rcgen::KeyPair::generate().expect("a key of P-256");
    fs::write(&file, pair.serialize_pem()).expect("written");
    let with_key = ["list", "--machine", "--client-id", "mine", "--client-key", path, "--issuer", &issuer.origin, &url];
    home.run(&with_key).is(0, &["tools: 1"], &[]);
    let asked = issuer.asked("POST /token");
    let of_client = "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer";
    assert!(asked.len() == 1 && asked[0].contains(of_client), "{asked:?}");
    // A key of another kind, a file without a key, and no file.
    let none = home.run(&[&with_key[..], &["--account", "b", "--key-alg", "RS256"]].concat());
    none.is(7, &[], &["the client could not sign: "]);
    home.run(&[&with_key[..], &["--key-alg", "HS256"]].concat()).is(2, &[], &["one of ES256, EdDSA, "]);
    fs::write(&file, format!("{CANARY}-assertion\n")).expect("written");
    home.run(&[&with_key[..], &["--account", "c"]].concat()).is(7, &[], &["the client could not sign: "]);
    home.run(&["login", "--assertion-file", path, "--account", "d", &url]).is(0, &["logged in at "], &[]);
    assert!(issuer.asked("POST /token")[1].contains(&format!("assertion={CANARY}-assertion&")));
    fs::remove_file(&file).expect("removed");
    home.run(&with_key).is(2, &[], &["--client-key ", "No such file"]);
    home.run(&["list", "--assertion-file", path, "--account", "e", &url]).is(7, &[], &["there is no assertion: "]);
}

#[test]
fn user_logs_in_at_another_device() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("device"));
    let login = home.run(&["login", "--device", &issuer.url()]);
    let page = format!("enter the code there:\n{}/device\nCode: ABCD-EFGH\n", issuer.origin);
    login.is(0, &["logged in at ", "and is renewed"], &[&page]);
    assert!(issuer.asked("GET /authorize").is_empty());
    home.run(&["list", &issuer.url()]).is(0, &["tools: 1"], &[]);
}

// covers: SEC-C-004
#[test]
fn browser_gets_the_page_as_one_argument() {
    let (issuer, home) = (Issuer::start(Setup::default()), Home::new("browser"));
    let (browser, opened) = (home.0.join("xdg-open"), home.0.join("opened"));
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$1\" >'{0}.new' && mv '{0}.new' '{0}'\n", opened.display());
    fs::write(&browser, script).expect("written");
    make_executable(&browser);
    let path = env::join_paths([&home.0, Path::new("/usr/bin"), Path::new("/bin")]).expect("a path");
    let with_browser = |words: &[&str], path: &OsStr| {
        let mut command = home.command(words);
        command.env("PATH", path);
        command
    };
    let login = Login::begin(with_browser(&["login", "--callback-port", "47193", &issuer.url()], &path));
    let page = login.page.clone();
    assert_eq!(query(&page, "redirect_uri").replace("%3A", ":").split("%2F").nth(2), Some("127.0.0.1:47193"));
    login.arrives().is(0, &["logged in at "], &[]);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !opened.exists() {
        assert!(Instant::now() < deadline, "no browser was started");
        thread::yield_now();
    }
    assert_eq!(fs::read_to_string(&opened).expect("text"), format!("1\n{page}\n"));
    // Without a browser the login goes on.
    let login = Login::begin(with_browser(&["login", &issuer.url()], OsStr::new("/nonexistent")));
    login.arrives().is(0, &["logged in at "], &[]);
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn login_needs_a_url_and_no_credentials() {
    run("login").is(2, &[], &["TARGET is missing"]);
    run("login STDIO").is(2, &[], &["a program has no login: TARGET is a URL"]);
    run("logout STDIO").is(2, &[], &["a program has no login"]);
    run("login http://127.0.0.1:1/ --client-secret-env X").is(2, &[], &["--client-id"]);
    let header = ["login", "http://127.0.0.1:1/", "--header", "Authorization: Bearer x"];
    Home::new("header").run(&header).is(2, &[], &["exclude each other"]);
    run("login localhost:80/mcp").is(2, &[], &["a URL has a scheme: mcp login http://localhost:80/mcp"]);
    run("login http://127.0.0.1:1/mcp").is(3, &[], &["is the server running?"]);
}
