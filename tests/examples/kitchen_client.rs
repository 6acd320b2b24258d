//! A client of the server in `kitchen_server.rs`: uses all that it offers.
#![forbid(unsafe_code)]

use mcp_blocking::{Object, Program, completion, connect, prompts, resources, tools};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or("usage: kitchen_client SERVER ARGUMENTS...")?;
    let client = connect(Program::new(program).args(args))?;
    let order = Object::new().with("dish", "soup").with("count", 2_i64);
    let order = client.call(tools::call("order").arguments(&order))?;
    let hours = client.call(resources::read("kitchen://hours"))?;
    let dish = client.call(resources::read("kitchen://dishes/stew"))?;
    let prompt = client.call(prompts::get("praise").argument("dish", "salad"))?;
    let dishes = client.call(completion::prompt("praise").argument("dish", "s"))?;
    for text in [order.first_text(), hours.first_text(), dish.first_text(), prompt.first_text()] {
        println!("{}", text.unwrap_or_default());
    }
    println!("{}", dishes.values.join(", "));
    client.close();
    Ok(())
}
