//! The tools whose calls become tasks, as the suite requires them.

use std::time::Duration;

use mcp_proto::model::elicitation::Field;
use mcp_proto::model::tasks::TaskOptions;
use mcp_proto::{Cx, ErrorObject, Form, TaskSupport, ToolError, tool};
use serde::Deserialize;
use serde_json::json;

use super::tools::{Returned, answer, described, name, result, said};
use super::{Fixture, Step};

/// How long the failing job works.
const WORK: Duration = Duration::from_millis(500);

/// The arguments of the computation.
#[derive(Deserialize)]
struct Computation {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    label: String,
}

/// Returns the tools whose calls become tasks, and one whose calls never do.
pub fn all() -> Vec<Fixture> {
    let schema = json!({
        "type": "object",
        "properties": { "seconds": { "type": "number" }, "label": { "type": "string" } },
    });
    let compute = tool("slow_compute").describe("Computes for some seconds").input_schema(schema);
    vec![
        described(tool("greet").describe("Greets"), |cx| {
            #[derive(Deserialize)]
            struct Guest {
                name: String,
            }
            said(format!("Hello, {}!", cx.arguments::<Guest>()?.name))
        }),
        Fixture {
            steps: vec![Step::IntoTask, Step::PauseOf(|cx| cx.arguments::<Computation>().map_or(0.0, |of| of.seconds))],
            ..described(compute.task(TaskSupport::Optional), |cx| {
                said(format!("Computed: {}", cx.arguments::<Computation>()?.label))
            })
        },
        Fixture {
            steps: vec![Step::IntoTask, Step::Pause(WORK)],
            ..task("failing_job", TaskSupport::Required, |_| Err("the job has failed".into()))
        },
        task("protocol_error_job", TaskSupport::Optional, |cx| {
            cx.into_task(TaskOptions::new())?;
            Err(ToolError::Protocol(ErrorObject::new(-32603, "the job cannot go on")))
        }),
        task("confirm_delete", TaskSupport::Optional, |cx| {
            cx.into_task(TaskOptions::new())?;
            let confirmed = cx.elicit("confirm", Form::new("Delete it?").field(Field::boolean("confirm")))?;
            said(format!("Deleted: {}", answer(&confirmed)))
        }),
        task("multi_input", TaskSupport::Optional, |cx| {
            cx.into_task(TaskOptions::new())?;
            let color = Form::new("What is your favorite color?").text("color");
            let questions = vec![("user_name".to_owned(), name().into()), ("user_color".to_owned(), color.into())];
            said(format!("Answered: {}", result(&cx.ask(questions)?)))
        }),
        task("test_tool_with_task", TaskSupport::Required, |cx| {
            // Before the task, so that it is a round of the request.
            let user = cx.elicit("user_name", name())?;
            cx.into_task(TaskOptions::new())?;
            said(format!("Hello: {}", answer(&user)))
        }),
    ]
}

fn task(name: &str, support: TaskSupport, end: fn(&Cx) -> Returned) -> Fixture {
    described(tool(name).describe("Takes long").task(support), end)
}
