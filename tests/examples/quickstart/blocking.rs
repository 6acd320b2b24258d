//! The tour with threads.

use crate::{Add, Count, Name, Nothing, Options, Transport, print_result, print_tools};
use mcp_blocking::{
    CallError, Client, ClientOptions, ElicitResult, Form, IntoTarget, Object, Progress, Router, Server, ToolError,
    connect_with, schema, serve_http, serve_https, serve_stdio, tool, tools,
};
use mcp_proto::server::SsePaths;
use std::error::Error;
use std::time::Duration;

/// The server of the tour.
fn server() -> Router {
    Router::new("quickstart", env!("CARGO_PKG_VERSION"))
        .instructions("Tools to try a client with.")
        .configure(|config| {
            config.validate = Some(schema::validator());
            config.sse = Some(SsePaths::default());
            config.web_socket = true;
        })
        .tool(tool("add").describe("Adds two integers").input::<Add>().read_only(), |_cx, add: Add| {
            Ok(add.a.checked_add(add.b).ok_or("the sum is too large")?)
        })
        .tool(tool("count").describe("Counts, and says how far it is").input::<Count>(), |cx, count: Count| {
            for n in 1..=count.to {
                std::thread::sleep(Duration::from_millis(20));
                let _ = cx.progress(Progress::new(f64::from(n)).total(f64::from(count.to)));
            }
            Ok(format!("counted to {}", count.to))
        })
        .tool(tool("greet").describe("Asks for a name, and greets").input::<Nothing>(), |cx, _: Nothing| {
            // The first call returns here. The handler is called again with the response.
            match cx.elicit("name", Form::new("What is your name?").text("name"))? {
                answer @ ElicitResult::Accept(_) => {
                    let name = answer.content::<Name>()?.map(|form| form.name).unwrap_or_default();
                    Ok(format!("Hello, {name}!"))
                }
                ElicitResult::Decline | ElicitResult::Cancel => Err(ToolError::from("the user gave no name")),
            }
        })
        .tool(tool("sleep").describe("Takes a minute, unless it is cancelled").input::<Nothing>(), |cx, _: Nothing| {
            for _ in 0..600 {
                if cx.is_cancelled() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok("rested")
        })
}

/// Serves on a free port of loopback. Returns the server and its URL for a transport.
fn listen(options: &Options, web: Transport) -> Result<(Server, String), Box<dyn Error>> {
    let (tls, address) = (options.tls()?, "127.0.0.1:0");
    let is_tls = tls.is_some();
    let http = match tls {
        Some(tls) => serve_https(server(), address, tls)?,
        None => serve_http(server(), address)?,
    };
    let url = web.url(http.local_addr().expect("an address"), is_tls);
    Ok((http, url))
}

/// Is the server, until the client is gone.
pub(crate) fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    if let Some(web) = options.web {
        let (http, url) = listen(options, web)?;
        println!("{url}");
        http.wait();
        return Ok(());
    }
    Ok(serve_stdio(server())?)
}

/// Is the client.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    if let Some(url) = options.url() {
        return tour(options, "the web", url);
    }
    if let Some(web) = options.web {
        let (http, url) = listen(options, web)?;
        tour(options, &url, url.as_str())?;
        http.stop(Duration::from_secs(1));
        return Ok(());
    }
    tour(options, "stdio", options.program()?)
}

fn tour(
    options: &Options,
    transport: &str,
    target: impl IntoTarget<mcp_blocking::Given>,
) -> Result<(), Box<dyn Error>> {
    let (legacy, own) = (options.legacy, options.is_tour());
    let config = ClientOptions::new()
        .set(move |config| Options { legacy, ..Options::default() }.configure(config))
        .on_elicit(move |question| {
            println!("the server asks: {}", question.message);
            if own { ElicitResult::Accept(Object::new().with("name", "Ada")) } else { ElicitResult::Decline }
        });
    let client = connect_with(target, config)?;
    let info = client.server().ok_or("not connected")?;
    let name =
        info.implementation.map_or_else(|| "a server".to_string(), |who| format!("{} {}", who.name, who.version));
    println!("connected to {name}, revision {}, over {transport}, with threads", info.version);

    let all = client.pages(tools::list()).collect::<Result<Vec<_>, _>>()?;
    print_tools(&all);
    if own {
        call_our_tools(&client)?;
    } else if let Some(name) = options.choose(&all) {
        let args = options.args.clone().unwrap_or_else(|| Object::new().into());
        print_result(name, &client.call(tools::call(name).param("arguments", Ok(args)))?);
    } else {
        println!("no tool that needs no argument and is read-only; name one with --tool NAME --args JSON");
    }
    client.close();
    println!("closed");
    Ok(())
}

fn call_our_tools(client: &Client) -> Result<(), Box<dyn Error>> {
    print_result("add", &client.call(tools::call("add").arguments(&Add { a: 2, b: 3 }))?);

    let count = tools::call("count").arguments(&Count { to: 5 });
    let told = |p: Progress| println!("count is at {} of {}", p.progress, p.total.unwrap_or(f64::NAN));
    print_result("count", &client.call(count.on_progress(told))?);

    print_result("greet", &client.call(tools::call("greet"))?);

    let slow = client.start(tools::call("sleep").timeout(None));
    let slow = match slow.wait_timeout(Duration::from_millis(200)) {
        Ok(_) => return Err("sleep came back early".into()),
        Err(slow) => slow,
    };
    slow.cancel(Some("we cannot wait"));
    match slow.wait() {
        Err(CallError::Cancelled { .. }) => println!("sleep: cancelled after 200 ms"),
        other => return Err(format!("sleep ended with {other:?}").into()),
    }
    Ok(())
}
