//! Runs real servers that share a store: `nodes [all|memory|redis|sentinel|cluster] [SECONDS]
//! [SEED]`. `nodes stores` runs the suite for stores alone, `nodes cost` measures. See
//! `mcp_tests::nodes`.

use mcp_tests::nodes::{self, Shape};
use std::process::ExitCode;
use std::time::Duration;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let which = args.first().map_or("all", String::as_str);
    match which {
        "stores" => return mcp_tests::exit_code("nodes", stores()),
        "cost" => return mcp_tests::exit_code("nodes", cost()),
        _ => {}
    }
    let number = |nth: usize, default: u64| args.get(nth).map_or(Some(default), |arg| arg.parse().ok());
    let shapes: Option<Vec<Option<Shape>>> = match which {
        // The first one takes longer.
        "all" => Some(vec![Some(Shape::Sentinel), Some(Shape::One), Some(Shape::Cluster), None]),
        "memory" => Some(vec![None]),
        name => Shape::named(name).map(|shape| vec![Some(shape)]),
    };
    let (Some(shapes), Some(seconds), Some(seed)) = (shapes, number(1, 300), number(2, 1)) else {
        eprintln!("usage: nodes [all|memory|redis|sentinel|cluster|stores|cost] [SECONDS] [SEED]");
        return ExitCode::FAILURE;
    };
    mcp_tests::exit_code("nodes", run(&shapes, seconds, seed))
}

fn run(shapes: &[Option<Shape>], seconds: u64, seed: u64) -> Result<bool, String> {
    let (mut passed, mut failed) = (0, 0);
    for (nth, shape) in shapes.iter().enumerate() {
        let length = Duration::from_secs(if nth == 0 { seconds } else { seconds / 5 });
        let report = nodes::run(*shape, length, seed)?;
        let faults = report.faults();
        faults.iter().take(20).for_each(|fault| println!("FAULT {fault}"));
        println!("{report}\n");
        (passed, failed) = (passed + report.answered(), failed + faults.len());
    }
    println!("nodes: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn stores() -> Result<bool, String> {
    let mut compared = 0;
    for shape in Shape::ALL {
        let of = nodes::check_store(shape).map_err(|why| format!("{}: {why}", shape.name()))?;
        println!("{:<10} {of:>5} replies", shape.name());
        compared += of;
    }
    println!("nodes: {compared} passed, 0 failed");
    Ok(true)
}

fn cost() -> Result<bool, String> {
    let rows = nodes::cost()?;
    rows.iter().for_each(|row| println!("{row}"));
    let kept = rows.iter().filter(|row| row.is_kept()).count();
    println!("nodes: {kept} passed, {} failed", rows.len() - kept);
    Ok(kept == rows.len())
}
