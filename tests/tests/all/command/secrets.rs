//! What the command reads, within bounds, and what it never shows.

use super::peers::{legacy, with};
use super::{Printed, Temp, run_with};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

// A list that does not end is read up to a bound, which the error names.
#[test]
fn endless_list_ends_at_its_bound() {
    let page = "!big=$(head -c 15000000 /dev/zero | tr '\\0' x); \
                printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[{\"name\":\"t\",\"description\":\"%s\",\
                \"inputSchema\":{\"type\":\"object\"}}],\"nextCursor\":\"c%s\"}}\\n' \"$id\" \"$big\" \"$id\"";
    let script = legacy(r#"{"tools":{}}"#, &[("tools/list", page)]);
    let printed = run_with(&with(&["list"], &script), "");
    printed.is(6, &[], &["tools/list: the lists are larger than 64 MiB: the rest was not read"]);
}

// A file of variables is a regular one of at most 1 MiB: a pipe would block, a device not end.
#[test]
fn files_of_a_configuration_are_bounded() {
    let fifo = env::temp_dir().join(format!("mcp-command-fifo-{}", std::process::id()));
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let large = Temp::new("large", &"A=1\n".repeat(300_000));
    let of = |file: &str| {
        let text = format!(r#"{{"servers": {{"a": {{"command": "true", "envFile": "{file}"}}}}}}"#);
        let config = Temp::new("env-file", &text);
        run_with(&["list", "--yes", "--config", config.path(), "a"], "")
    };
    of(fifo.to_str().expect("unicode")).is(2, &[], &["it is no regular file"]);
    of("/dev/zero").is(2, &[], &["/dev/zero: it is no regular file"]);
    of(large.path()).is(2, &[], &["it is larger than 1 MiB"]);
    std::fs::remove_file(fifo).expect("removed");
    let text = r#"{"mcp": {"a": {"type": "remote", "url": "http://127.0.0.1:1/{file:/dev/zero}"}}}"#;
    let config = Temp::new("file-variable", text);
    let printed = run_with(&["list", "--yes", "--config", config.path(), "a"], "");
    printed.is(2, &[], &["/dev/zero: it is no regular file"]);
}

// The password of a URL is shown in no error.
#[test]
fn password_of_a_url_is_never_shown() {
    for words in [
        &["list", "https://ann:hunter2@127.0.0.1:1/x"][..],
        &["list", "ann:hunter2@127.0.0.1:1/x"],
        &["doctor", "http://ann:hunter2@127.0.0.1:1/x"],
        &["list", "tools", "https://ann:hunter2@h/"],
        &["read", "http://127.0.0.1:1/", "x:y", "https://ann:hunter2@h/"],
        &["list", "https://ann:hunter2@h/", "--", "true"],
        &["list", "tools", "x", "https://ann:hunter2@h/"],
        &["doctor", "http://127.0.0.1:1/?api_key=hunter2"],
    ] {
        let Printed { out, err, .. } = run_with(words, "");
        assert!(!out.contains("hunter2") && !err.contains("hunter2"), "{words:?}\n{out}\n{err}");
        assert!(!(out + &err).is_empty());
    }
}

// A token comes from a file or from the environment, and not from the list of processes.
#[test]
fn header_comes_from_a_file_or_the_environment() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let heads = thread::spawn(move || {
        let heads = listener.incoming().take(2).map(|stream| {
            let mut stream = stream.expect("a client");
            let lines = BufReader::new(stream.try_clone().expect("a copy")).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).map(|l| l.to_lowercase()).collect();
            drop(stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
            head
        });
        heads.collect::<Vec<_>>()
    });
    let file = Temp::new("headers", "# a comment\nAuthorization: Bearer hunter2\n\nX-A: 1:2\n");
    let printed = run_with(&["list", &url, "--header-file", file.path()], "");
    printed.is(3, &[], &["the server does not accept these credentials"]);
    // Of the environment of this test.
    let home = env::var("HOME").expect("a folder").to_lowercase();
    run_with(&["list", &url, "--header", "Authorization=@HOME"], "").is(3, &[], &["HTTP 401"]);
    let heads = heads.join().expect("no panic");
    assert!(heads[0].contains(&"authorization: bearer hunter2".to_owned()), "{:?}", heads[0]);
    assert!(heads[0].contains(&"x-a: 1:2".to_owned()), "{:?}", heads[0]);
    assert!(heads[1].contains(&format!("authorization: {home}")), "{:?}", heads[1]);
    let missing = run_with(&["list", &url, "--header", "X-A=@NO_SUCH_VARIABLE"], "");
    missing.is(2, &[], &["--header X-A: the environment has no variable NO_SUCH_VARIABLE"]);
    let wrong = Temp::new("no-field", "X-A: 1\nhunter2\n");
    let printed = run_with(&["list", &url, "--header-file", wrong.path()], "");
    assert!(!printed.err.contains("hunter2"), "{}", printed.err);
    printed.is(2, &[], &["line 2 is no field"]);
}
