//! A program that uses a client and then ends in one of many ways: `host ADAPTER [FLAGS] END
//! PROGRAM ARGS...`, where the adapter is `blocking`, `smol` or `loop`.
//!
//! `--inherit` runs the program in the group of the host. `--forward` closes the client on Ctrl-C
//! and exits with 130. `--stay` keeps the host running after the end of the client, until its own
//! standard input ends. It prints `ready`, then `ended` and how.

use mcp_blocking as blocking;
use mcp_driver::check;
use mcp_proto::client::Policy;
use mcp_proto::{ClientConfig, Group, Program, tools};
use mcp_smol as smol_adapter;
use mcp_tests::poll_loop::PollLoop;
use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, thread};

/// Maximum time for a program that must respond.
const PATIENCE: Duration = Duration::from_secs(20);

type Done = Result<(), Box<dyn Error>>;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("Error: {why:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Vec<String>) -> Done {
    let mut args = args.into_iter().peekable();
    let adapter = args.next().ok_or("no adapter is named")?;
    let (mut forward, mut stay, mut group) = (false, false, Group::Own);
    while let Some(flag) = args.next_if(|arg| arg.starts_with("--")) {
        match flag.as_str() {
            "--inherit" => group = Group::Inherit,
            "--forward" => forward = true,
            "--stay" => stay = true,
            _ => return Err(format!("{flag} is no flag").into()),
        }
    }
    let end = args.next().ok_or("no end is named")?;
    let program = Program::new(args.next().ok_or("no program is named")?).args(args).group(group);
    let done = match adapter.as_str() {
        "blocking" => with_blocking(&end, program, forward),
        "smol" => with_smol(&end, program, forward),
        _ => with_loop(&end, program),
    };
    say(&done.as_ref().map_or_else(|e| format!("ended: {e}"), |()| "ended".to_string()))?;
    if stay {
        io::stdin().read_to_end(&mut Vec::new())?;
    }
    done
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Sets short time limits for the steps of a shutdown.
fn quick_end(config: &mut ClientConfig) {
    let short = Duration::from_millis(200);
    (config.limits.frame.exit_timeout, config.limits.frame.terminate_timeout) = (short, short);
}

/// The same, with a short timeout for the handshake with a program that never responds. A program
/// that responds has all the time that a busy machine may need.
fn quick(config: &mut ClientConfig) {
    quick_end(config);
    let patience = if env::args().any(|arg| arg == "--mute") { Duration::from_millis(200) } else { PATIENCE };
    (config.probe_timeout, config.initialize_timeout) = (patience, patience);
    // The probe takes time, and a forked server is not started twice.
    config.policy = Policy::Auto;
}

/// Returns whether a process of the program has written its id to the file that `PIDS` names.
fn has_started() -> bool {
    let file = env::var_os("PIDS").and_then(|file| fs::read(file).ok());
    file.is_some_and(|ids| ids.contains(&b'\n'))
}

fn with_blocking(end: &str, program: Program, forward: bool) -> Done {
    let configure = if end == "connect" { quick_end } else { quick };
    let config = blocking::ClientOptions::new().set(configure).stderr(blocking::Stderr::Discard);
    let connecting = blocking::connecting(program, config)?;
    if forward {
        let closer = connecting.closer();
        ctrlc::set_handler(move || closer.exit(130))?;
    }
    if end == "connect" {
        say("ready")?;
    }
    let client = connecting.wait()?;
    if end != "connect" {
        client.call(tools::call("pid"))?;
        say("ready")?;
    }
    let waiting = |limit: Option<Duration>| {
        let client = client.clone();
        thread::spawn(move || client.call(tools::call("wait").timeout(limit)).map(drop))
    };
    match end {
        "return" => {}
        "connect" => Err("it agrees")?,
        "error" => Err("on purpose")?,
        "panic" => panic!("on purpose"),
        "close" => drop(client.close()),
        "call" => drop(client.call(tools::call("wait").timeout(None))?),
        "call-exit" => {
            drop(client.call(tools::call("wait").timeout(None)));
            std::process::exit(1)
        }
        "exit" => std::process::exit(0),
        "close-waiting" => {
            let call = waiting(None);
            client.close();
            call.join().map_err(|_| "it panicked")?.expect_err("the client was closed");
        }
        "drop-waiting" => {
            let call = waiting(Some(Duration::from_millis(200)));
            drop(client);
            call.join().map_err(|_| "it panicked")?.expect_err("there is no answer");
        }
        "return-waiting" => drop(waiting(None)),
        "wait" => loop {
            thread::park();
        },
        other => Err(format!("{other} is no end"))?,
    }
    Ok(())
}

fn with_smol(end: &str, program: Program, forward: bool) -> Done {
    let config = || smol_adapter::ClientOptions::new().set(quick).stderr(smol_adapter::Stderr::Discard);
    match end {
        "connect" | "call" | "call-exit" => {
            let configure = if end == "connect" { quick_end } else { quick };
            let config = smol_adapter::ClientOptions::new().set(configure).stderr(smol_adapter::Stderr::Discard);
            let connecting = smol_adapter::connecting(program, config)?;
            if forward {
                let closer = connecting.closer();
                ctrlc::set_handler(move || smol::block_on(closer.exit(130)))?;
            }
            if end == "connect" {
                say("ready")?;
            }
            return smol::block_on(async {
                let client = connecting.await?;
                say("ready")?;
                let call = client.call(tools::call("wait").timeout(None)).await;
                if end == "call-exit" {
                    std::process::exit(1)
                }
                Ok(call.map(drop)?)
            });
        }
        // The connection fails, and everything ends with it.
        "handshake" => {
            let (client, driver) = smol_adapter::connect_driven(program, config())?;
            let driver = smol::spawn(driver);
            let failed = smol::block_on(client.ready());
            smol::block_on(driver);
            return Ok(failed?);
        }
        "abandon" => {
            let connecting = smol_adapter::connect(program);
            // Until the program runs, and possibly its children.
            let started = async {
                while !has_started() {
                    smol::Timer::after(Duration::from_millis(5)).await;
                }
                smol::Timer::after(Duration::from_millis(200)).await;
            };
            smol::block_on(smol::future::or(async { drop(connecting.await) }, started));
            return Ok(());
        }
        "runtime" => {
            let executor = smol::Executor::new();
            let (client, driver) = smol_adapter::connect_driven(program, config())?;
            executor.spawn(driver).detach();
            smol::block_on(executor.run(client.call(tools::call("pid"))))?;
            say("ready")?;
            drop(executor);
            return Ok(());
        }
        _ => {}
    }
    smol::block_on(async {
        // The client ends its driver.
        if ["return", "error", "panic"].contains(&end) {
            let client = smol_adapter::connect(program).await?;
            client.call(tools::call("pid")).await?;
            if forward {
                forward_to(&client)?;
            }
            say("ready")?;
            return match end {
                "error" => Err("on purpose".into()),
                "panic" => panic!("on purpose"),
                _ => Ok(()),
            };
        }
        let (client, driver) = smol_adapter::connect_driven(program, config())?;
        let driver = smol::spawn(driver);
        client.call(tools::call("pid")).await?;
        if forward {
            forward_to(&client)?;
        }
        say("ready")?;
        let call = client.start(tools::call("wait").timeout(None));
        match end {
            "close" | "close-waiting" => {
                client.close().await;
                call.await.expect_err("the client was closed");
                driver.await;
            }
            "drop-waiting" => {
                let call = smol::spawn(call);
                drop(client);
                call.cancel().await;
                driver.await;
            }
            "driver" => {
                driver.cancel().await;
                call.await.expect_err("no driver polls it");
            }
            "exit" => std::process::exit(0),
            "wait" => smol::future::pending().await,
            other => Err(format!("{other} is no end"))?,
        }
        Ok(())
    })
}

fn forward_to(client: &smol_adapter::Client) -> Done {
    let closer = client.closer();
    ctrlc::set_handler(move || smol::block_on(closer.exit(130)))?;
    Ok(())
}

fn with_loop(end: &str, program: Program) -> Done {
    let mut config = ClientConfig::program(program);
    quick(&mut config);
    let mut client = PollLoop::new(config)?;
    check(&mut client.engine);
    client.call(tools::call("pid"))?;
    say("ready")?;
    match end {
        "return" => Ok(()),
        "error" => Err("on purpose".into()),
        "panic" => panic!("on purpose"),
        "close" => Ok(client.close()?),
        other => Err(format!("{other} is no end").into()),
    }
}
