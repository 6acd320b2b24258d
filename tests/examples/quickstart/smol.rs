//! The tour with smol.

use crate::{Add, Count, Name, Nothing, Options, Transport, print_result, print_tools};
use mcp_proto::server::SsePaths;
use mcp_smol::{
    CallError, Client, ClientOptions, ElicitResult, Form, IntoTarget, Object, Progress, Router, Server, ToolError,
    connect_driven, schema, serve_http, serve_https, serve_stdio, tool, tools,
};
use smol::Timer;
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
        .tool_async(tool("add").describe("Adds two integers").input::<Add>().read_only(), |_cx, add: Add| async move {
            Ok(add.a.checked_add(add.b).ok_or("the sum is too large")?)
        })
        .tool_async(
            tool("count").describe("Counts, and says how far it is").input::<Count>(),
            |cx, count: Count| async move {
                for n in 1..=count.to {
                    Timer::after(Duration::from_millis(20)).await;
                    let _ = cx.progress(Progress::new(f64::from(n)).total(f64::from(count.to)));
                }
                Ok(format!("counted to {}", count.to))
            },
        )
        .tool_async(
            tool("greet").describe("Asks for a name, and greets").input::<Nothing>(),
            |cx, _: Nothing| async move {
                // The first call returns here. The handler is called again with the response.
                match cx.elicit("name", Form::new("What is your name?").text("name"))? {
                    answer @ ElicitResult::Accept(_) => {
                        let name = answer.content::<Name>()?.map(|form| form.name).unwrap_or_default();
                        Ok(format!("Hello, {name}!"))
                    }
                    ElicitResult::Decline | ElicitResult::Cancel => Err(ToolError::from("the user gave no name")),
                }
            },
        )
        .tool_async(
            tool("sleep").describe("Takes a minute, unless it is cancelled").input::<Nothing>(),
            |_cx, _: Nothing| async move {
                // Cancelling drops this future.
                Timer::after(Duration::from_secs(60)).await;
                Ok("rested")
            },
        )
}

/// Serves on a free port of loopback. Returns the server and its URL for a transport.
async fn listen(options: &Options, web: Transport) -> Result<(Server, String), Box<dyn Error>> {
    let (tls, address) = (options.tls()?, "127.0.0.1:0");
    let is_tls = tls.is_some();
    let http = match tls {
        Some(tls) => serve_https(server(), address, tls).await?,
        None => serve_http(server(), address).await?,
    };
    let url = web.url(http.local_addr().expect("an address"), is_tls);
    Ok((http, url))
}

/// Is the server, until the client is gone.
pub(crate) fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    smol::block_on(async {
        if let Some(web) = options.web {
            let (http, url) = listen(options, web).await?;
            println!("{url}");
            http.wait().await;
            return Ok(());
        }
        Ok(serve_stdio(server()).await?)
    })
}

/// Is the client.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    smol::block_on(async {
        if let Some(url) = options.url() {
            return tour(options, "the web", url).await;
        }
        if let Some(web) = options.web {
            let (http, url) = listen(options, web).await?;
            tour(options, &url, url.as_str()).await?;
            http.stop(Duration::from_secs(1)).await;
            return Ok(());
        }
        tour(options, "stdio", options.program()?).await
    })
}

async fn tour(
    options: &Options,
    transport: &str,
    target: impl IntoTarget<mcp_smol::Given>,
) -> Result<(), Box<dyn Error>> {
    let (legacy, own) = (options.legacy, options.is_tour());
    let config = ClientOptions::new()
        .set(move |config| Options { legacy, ..Options::default() }.configure(config))
        .on_elicit(move |question| async move {
            println!("the server asks: {}", question.message);
            if own { ElicitResult::Accept(Object::new().with("name", "Ada")) } else { ElicitResult::Decline }
        });
    let (client, driver) = connect_driven(target, config)?;
    let driver = smol::spawn(driver);
    client.ready().await?;
    let info = client.server().ok_or("not connected")?;
    let name =
        info.implementation.map_or_else(|| "a server".to_string(), |who| format!("{} {}", who.name, who.version));
    println!("connected to {name}, revision {}, over {transport}, with smol", info.version);

    let all = client.pages(tools::list()).all().await?;
    print_tools(&all);
    if own {
        call_our_tools(&client).await?;
    } else if let Some(name) = options.choose(&all) {
        let args = options.args.clone().unwrap_or_else(|| Object::new().into());
        print_result(name, &client.call(tools::call(name).param("arguments", Ok(args))).await?);
    } else {
        println!("no tool that needs no argument and is read-only; name one with --tool NAME --args JSON");
    }
    client.close().await;
    driver.await;
    println!("closed");
    Ok(())
}

async fn call_our_tools(client: &Client) -> Result<(), Box<dyn Error>> {
    print_result("add", &client.call(tools::call("add").arguments(&Add { a: 2, b: 3 })).await?);

    let count = tools::call("count").arguments(&Count { to: 5 });
    let told = |p: Progress| println!("count is at {} of {}", p.progress, p.total.unwrap_or(f64::NAN));
    print_result("count", &client.call(count.on_progress(told)).await?);

    print_result("greet", &client.call(tools::call("greet")).await?);

    let slow = client.start(tools::call("sleep").timeout(None));
    let impatient = async {
        Timer::after(Duration::from_millis(200)).await;
        slow.cancel(Some("we cannot wait"));
    };
    impatient.await;
    match slow.await {
        Err(CallError::Cancelled { .. }) => println!("sleep: cancelled after 200 ms"),
        other => return Err(format!("sleep ended with {other:?}").into()),
    }
    Ok(())
}
