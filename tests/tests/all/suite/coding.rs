//! Compressed bodies over TCP: of this server for this client and for curl, and of a server that
//! compresses its event streams.

use super::raw::{CALLED, call as called, dial, limited, responds, served};
use super::*;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use mcp_proto::client::Policy;
use mcp_tests::stub::{Step, Stub, say};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// A text that is easy to compress.
fn words(len: usize) -> String {
    "the quick brown fox ".repeat(len / 20)
}

fn echo(client: &Client, of: &str) -> String {
    text(client.call(tools::call("echo").arguments(&Text { text: of.into() })).wait())
}

#[test]
fn large_result_is_compressed_between_own_peers() {
    let _limit = limit();
    let (server, _seen, client) = served();
    let long = words(1 << 20);
    assert_eq!(echo(&client, "short"), "short");
    for _ in 0..3 {
        let before = client.stats().traffic.bytes_in;
        assert_eq!(echo(&client, &long), long);
        let received = client.stats().traffic.bytes_in - before;
        assert!(received < long.len() as u64 / 10, "{received}");
    }
    assert_eq!(echo(&client, "short"), "short");
    client.close().wait();
    stop(&server, Duration::ZERO);
    // Without compression on the side of the server.
    let (server, _seen) = limited(|config| config.compression = false);
    let client = connect(format!("http://{}/mcp", server.local_addr().expect("an address"))).wait().expect("connected");
    let before = client.stats().traffic.bytes_in;
    assert_eq!(echo(&client, &long), long);
    assert!(client.stats().traffic.bytes_in - before > long.len() as u64);
    client.close().wait();
    stop(&server, Duration::ZERO);
}

/// Reads a response with a length. Returns its head in lower case, and its body.
fn answered(request: &str, server: &Server) -> (String, Vec<u8>) {
    let mut stream = dial(server);
    stream.write_all(request.as_bytes()).expect("written");
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = all.windows(4).position(|part| part == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            if all.len() >= end + 4 + length.parse::<usize>().expect("a number") {
                return (head, all.split_off(end + 4));
            }
        }
        let n = stream.read(&mut buffer).expect("bytes");
        assert!(n > 0, "the end came within {:?}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..n]);
    }
}

#[test]
fn server_compresses_what_is_large_and_asked_for() {
    let _limit = limit();
    let (server, _seen) = limited(|_| {});
    for (len, fields, is_coded) in [
        (5000, "Accept-Encoding: gzip\r\n", true),
        (5000, "Accept-Encoding: deflate, gzip;q=0.5\r\n", true),
        (5000, "Accept-Encoding: gzip;q=0\r\n", false),
        (5000, "Accept-Encoding: br\r\n", false),
        (5000, "", false),
        (100, "Accept-Encoding: gzip\r\n", false),
    ] {
        let request = called("echo", &format!(r#"{{"text":"{}"}}"#, words(len)), fields);
        let (head, body) = answered(&request, &server);
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let text = match head.contains("content-encoding: gzip") {
            false => String::from_utf8(body).expect("text"),
            true => {
                assert!(head.contains("vary: accept-encoding"), "{head}");
                let mut text = String::new();
                GzDecoder::new(&body[..]).read_to_string(&mut text).expect("gzip");
                text
            }
        };
        assert_eq!(head.contains("content-encoding"), is_coded, "{fields}: {head}");
        assert!(text.contains(&words(len)), "{text}");
    }
    stop(&server, Duration::ZERO);
}

/// A program that has its own implementation of all this. Without it there is nothing to compare.
#[test]
fn curl_reads_what_the_server_compresses() {
    let _limit = limit();
    let (server, _seen) = limited(|_| {});
    let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
    let request = called("echo", &format!(r#"{{"text":"{}"}}"#, words(100_000)), "");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    let curl = |options: &[&str]| {
        let mut curl = Command::new("curl");
        for field in head.lines().skip(1).filter(|line| !line.starts_with("Content-Length")) {
            curl.args(["-H", field]);
        }
        curl.args(["-s", "--noproxy", "*", "--data-binary", "@-", "-w", "\n%{size_download}"]).args(options).arg(&url);
        let mut child = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        child.stdin.take().expect("a pipe").write_all(body.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("an output");
        let output = String::from_utf8(output.stdout).expect("text");
        let (text, size) = output.rsplit_once('\n').expect("two lines");
        assert!(text.contains(&words(100_000)), "{text}");
        Some(size.parse::<usize>().expect("a number"))
    };
    let Some(plain) = curl(&[]) else { return };
    let coded = curl(&["--compressed"]).expect("it ran before");
    assert!(coded < plain / 10, "{coded} of {plain}");
    // It compresses no requests, but sends what it is given.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(body.as_bytes()).expect("written");
    let coded = gzip.finish().expect("gzip");
    let head = head.lines().filter(|line| !line.starts_with("Content-Length")).collect::<Vec<_>>().join("\r\n");
    let head = format!("{head}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", coded.len());
    let mut stream = dial(&server);
    stream.write_all(&[head.as_bytes(), &coded].concat()).expect("written");
    assert!(raw::read_until(&mut stream, &words(100_000)).starts_with("HTTP/1.1 200"));
    stop(&server, Duration::ZERO);
}

/// Part of an event stream: these bytes are all that a flush gives.
#[derive(Default)]
struct Flushed(Vec<&'static [u8]>);

/// Compresses the events. Returns the bytes of each flush, and those of the end.
fn flushed(events: &[String]) -> Flushed {
    let mut stream = GzBuilder::new().filename("events").write(Vec::new(), Compression::best());
    let mut parts = Vec::new();
    let mut taken = 0;
    for event in events {
        stream.write_all(event.as_bytes()).and_then(|()| stream.flush()).expect("a vector takes all");
        parts.push(stream.get_ref()[taken..].to_vec());
        taken = stream.get_ref().len();
    }
    parts.push(stream.finish().expect("a vector takes all")[taken..].to_vec());
    // The steps of a stub live as long as the program.
    Flushed(parts.into_iter().map(|part| &*part.leak()).collect())
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n";

#[test]
fn events_of_a_compressed_stream_come_at_once() {
    let _limit = limit();
    let stub = Stub::start(|ask| {
        if ask.what != "tools/call slow" {
            return responds(ask);
        }
        assert_eq!(ask.field("accept-encoding"), Some("gzip, deflate"));
        let token = &ask.body["params"]["_meta"]["progressToken"];
        let progress = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        );
        let result = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{CALLED}}}"#, ask.id);
        let Flushed(parts) = flushed(&[format!("data: {progress}\n\n"), format!("data: {result}\n\n")]);
        let &[first, second, end] = &parts[..] else { panic!("three parts") };
        // The second part comes only once the client has seen the first.
        let steps = [say(STREAM), Step::Bytes(first), Step::After("tools/call seen"), Step::Bytes(second)];
        steps.into_iter().chain([Step::Bytes(end), Step::Close]).collect()
    })
    .expect("listens");
    let config = ClientOptions::new().set(|config| config.policy = Policy::Modern);
    let client = connect_with(stub.url(), config).wait().expect("connected");
    let (seen, sees) = mpsc::channel();
    std::thread::scope(|scope| {
        let other = &client;
        scope.spawn(move || {
            sees.recv_timeout(BOUND).expect("progress");
            assert_eq!(text(call(other, "seen")), "3");
        });
        let slow = tools::call("slow").on_progress(|progress| seen.send(progress.progress).expect("it waits"));
        assert_eq!(text(client.call(slow).wait()), "3");
    });
    client.close().wait();
}

/// A few bytes become several turns of work, and nothing more arrives: the client goes on by
/// itself.
#[test]
fn long_expansion_of_one_read_goes_on_by_itself() {
    let _limit = limit();
    let stub = Stub::start(|ask| {
        if ask.what != "tools/call slow" {
            return responds(ask);
        }
        let result = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{CALLED}}}"#, ask.id);
        let Flushed(parts) = flushed(&[format!("{}data: {result}\n\n", "\n".repeat(4 << 20))]);
        assert!(parts[0].len() < 64 << 10, "{}", parts[0].len());
        vec![say(STREAM), Step::Bytes(parts[0]), Step::Hold]
    })
    .expect("listens");
    let config = ClientOptions::new().set(|config| config.policy = Policy::Modern);
    let client = connect_with(stub.url(), config).wait().expect("connected");
    assert_eq!(text(call(&client, "slow")), "3");
    client.close().wait();
}

/// The same at a server: a request of a few bytes that is large when it is decoded.
#[test]
fn large_coded_request_of_one_read_is_answered() {
    let _limit = limit();
    let (server, _seen) = limited(|_| {});
    let request = called("add", &format!(r#"{{"a":1,"b":2,"c":"{}"}}"#, words(3 << 20)), "");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(body.as_bytes()).expect("written");
    let coded = gzip.finish().expect("gzip");
    let head = head.lines().filter(|line| !line.starts_with("Content-Length")).collect::<Vec<_>>().join("\r\n");
    let head = format!("{head}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", coded.len());
    let mut stream = dial(&server);
    stream.write_all(&[head.as_bytes(), &coded].concat()).expect("written");
    let answer = raw::read_until(&mut stream, r#""text":"3""#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    stop(&server, Duration::ZERO);
}
