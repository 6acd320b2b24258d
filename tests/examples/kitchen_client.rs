//! A client of the server in `kitchen_server.rs`: uses all that it offers.
#![forbid(unsafe_code)]

use mcp_blocking::{Object, Program, completion, connect, prompts, resources, tools};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = connect(Program::new(std::env::args().nth(1).ok_or("usage: kitchen_client SERVER")?))?;
    let order =
        client.call(tools::call("order").arguments(&Object::new().with("dish", "soup").with("count", 2_i64)))?;
    let hours = client.call(resources::read("kitchen://hours"))?;
    let dish = client.call(resources::read("kitchen://dishes/stew"))?;
    let prompt = client.call(prompts::get("praise").argument("dish", "salad"))?;
    let dishes = client.call(completion::prompt("praise").argument("dish", "s"))?;
    println!("{:?}, {:?}, {:?}", order.first_text(), hours.first_text(), dish.first_text());
    println!("{:?}, {:?}", prompt.first_text(), dishes.values);
    client.close();
    Ok(())
}
