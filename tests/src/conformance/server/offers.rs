//! The resources, prompts and completions of the server, with the results that the suite requires.

use mcp_proto::prompts::PromptArgument;
use mcp_proto::{Content, Cx, Form, Prompt, ResourceContents, Router, Skill, ToolError, prompt, resource, template};
use serde::Deserialize;

use super::tools::{PNG, answer};

/// The arguments of the prompt with arguments.
#[derive(Deserialize)]
struct Two {
    arg1: String,
    arg2: String,
}

/// The arguments of the prompt with an embedded resource.
#[derive(Deserialize)]
struct Embedded {
    #[serde(rename = "resourceUri")]
    uri: String,
}

/// Adds them to a router.
pub fn offer(router: Router) -> Router {
    completions(prompts(skills(resources(router))))
}

/// A skill with a directory in it, and a nested one.
fn skills(router: Router) -> Router {
    const MAIN: &str = "---\nname: reviews\ndescription: Reviews changes as this team does.\nlicense: MIT\n\
        metadata:\n  version: \"1.0\"\n  levels: [1, 2.50, deep]\n---\n\nRead references/STYLE.md first.\n";
    const NESTED: &str = "---\nname: naming\ndescription: Names things.\n---\n\nShort names.\n";
    let files: [(&str, &[u8]); 4] = [
        ("SKILL.md", MAIN.as_bytes()),
        ("references/STYLE.md", b"# Style\n"),
        ("assets/mark.bin", b"\0\x01\x02"),
        ("naming/SKILL.md", NESTED.as_bytes()),
    ];
    let main = Skill::from_files("team/reviews", files).expect("a valid skill");
    let nested = Skill::from_files("team/reviews/naming", [("SKILL.md", NESTED)]).expect("a valid skill");
    router.skill(main).skill(nested).skill_directories(true)
}

fn resources(router: Router) -> Router {
    let text = resource("test://static-text").name("static-text").describe("A line of text").mime("text/plain");
    let pixel = resource("test://static-binary").name("static-binary").describe("A red pixel").mime("image/png");
    let data = template("test://template/{id}/data").name("data").describe("Data by id").mime("application/json");
    router
        .resource(text, |_cx| Ok("This is the content of the static text resource."))
        .resource(pixel, |cx| Ok(ResourceContents::blob(cx.uri(), PNG)))
        .resource(resource("test://watched-resource").describe("What a client subscribes to"), |_cx| Ok("unchanged"))
        .template_async(data, |cx| async move {
            let id: String = cx.variable("id")?;
            Ok(format!(r#"{{"id":"{id}","templateTest":true}}"#))
        })
}

fn prompts(router: Router) -> Router {
    let two = described("test_prompt_with_arguments", "Repeats two arguments")
        .argument(PromptArgument::new("arg1").describe("The first"))
        .argument(PromptArgument::new("arg2").describe("The second"));
    let embedded = described("test_prompt_with_embedded_resource", "Embeds a resource")
        .argument(PromptArgument::new("resourceUri").describe("Its URI"));
    router
        .prompt(described("test_simple_prompt", "Says something simple"), |_cx, ()| {
            Ok("This is a simple prompt for testing.")
        })
        .prompt_async(two, |_cx, Two { arg1, arg2 }| async move {
            Ok(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))
        })
        .prompt(embedded, |_cx, Embedded { uri }| {
            let text = ResourceContents::text(uri, "Embedded resource content for testing.");
            Ok(Content::from(text.mime("text/plain")))
        })
        .prompt(described("test_prompt_with_image", "Shows an image"), |_cx, ()| Ok(Content::image(PNG, "image/png")))
        .prompt(described("test_input_required_result_prompt", "Asks for a context"), ask)
}

fn completions(router: Router) -> Router {
    router.complete_prompt("test_prompt_with_arguments", "arg1", |_cx, entered| {
        let words = ["paris", "park", "party"].into_iter();
        Ok(words.filter(|word| word.starts_with(entered)).collect::<Vec<_>>())
    })
}

fn described(name: &str, what: &str) -> Prompt {
    prompt(name).describe(what)
}

fn ask(cx: &Cx, (): ()) -> Result<String, ToolError> {
    let form = Form::new("What context should the prompt use?").text("context");
    Ok(format!("Use this context: {}", answer(&cx.elicit("user_context", form)?)))
}
