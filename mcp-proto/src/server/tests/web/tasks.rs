//! Tasks of 2025-11-25 over HTTP.

use super::*;
use crate::model::tasks::TaskOptions;

// covers: TASKL-S-028, TASKL-B-013
#[test]
fn state_of_a_task_is_no_stream() {
    let mut site = Site::with(|config| config.tasks = true);
    let client = site.session("2025-11-25", "{}");
    let x = site.post(client.headers(), &legacy("1", "tools/call", r#"{"name":"t","task":{}}"#));
    let (responder, _) = site.handed();
    site.bench.server.notify(site.bench.now, responder.key(), Note::IntoTask(TaskOptions::new())).unwrap();
    let said = site.said(x);
    let created = result(said[0].strip_prefix("200 ").unwrap());
    let id: String = created.object("task").unwrap().required("taskId").unwrap();
    let named = |n: &str, method: &str| legacy(n, method, &format!(r#"{{"taskId":"{id}"}}"#));
    let x = site.post(client.headers(), &named("2", "tasks/get"));
    let said = site.said(x);
    let [state] = &said[..] else { panic!("{said:?}") };
    assert_eq!(result(state.strip_prefix("200 ").unwrap()).str("status").as_deref(), Some("working"));
    assert_eq!(site.head(x).headers.get("content-type"), Some("application/json"));
    // The client of the result goes away, and comes again.
    let waiting = site.post(client.headers(), &named("3", "tasks/result"));
    site.cut(waiting);
    site.complete(responder, r#"{"content":[]}"#);
    let x = site.post(client.headers(), &named("4", "tasks/result"));
    assert!(result(site.said(x)[0].strip_prefix("200 ").unwrap()).contains("content"));
}
