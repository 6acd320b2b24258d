//! A server with a tool, a resource, a resource template, a prompt and a completion.
#![forbid(unsafe_code)]

use mcp_blocking::{Router, prompt, resource, schema, serve_stdio, template, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    dish: String,
    count: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Praised {
    dish: String,
}

fn main() -> std::io::Result<()> {
    const DISHES: [&str; 3] = ["salad", "soup", "stew"];
    let order = tool("order").describe("Orders dishes").input::<Order>();
    let router = Router::new("kitchen", "1.0")
        .configure(|config| config.validate = Some(schema::validator()))
        .tool(order, |_cx, order: Order| Ok(format!("{} of {}", order.count, order.dish)))
        .resource(resource("kitchen://hours").mime("text/plain"), |_cx| Ok("11 to 22"))
        .template(template("kitchen://dishes/{dish}").mime("text/plain"), |cx| {
            let dish: String = cx.variable("dish")?;
            Ok(DISHES.contains(&&*dish).then(|| format!("{dish} of the day")))
        })
        .prompt(prompt("praise").arguments_of::<Praised>(), |_cx, praised: Praised| {
            Ok(format!("Praise the {}.", praised.dish))
        })
        .complete_prompt("praise", "dish", |_cx, entered| {
            Ok(DISHES.into_iter().filter(|dish| dish.starts_with(entered)).collect::<Vec<_>>())
        });
    serve_stdio(router)
}
