use super::*;
use crate::model::roots::Roots;
use crate::model::sampling::{SampleRequest, SampleResult};
use crate::model::{prompts, resources, tools};
use crate::version::ProtocolVersion;
use alloc::string::{String, ToString};
use alloc::vec;
use serde_json::{Value, json};

fn raw(value: &Value) -> RawJson {
    RawJson::parse(value.to_string().into_bytes()).unwrap()
}

fn object(value: &Value) -> Object {
    Object::read(&raw(value)).unwrap()
}

fn decode<M: Method>(value: &Value) -> Result<M::Output, DecodeError> {
    M::decode(RawResult::new(raw(value), ProtocolVersion::V2025_11_25))
}

/// The name, the member and the position of each element.
fn named(skipped: &SkippedList) -> Vec<(usize, Option<&str>, Option<&str>)> {
    skipped.named().iter().map(|one| (one.index, one.name.as_deref(), one.member.as_deref())).collect()
}

#[test]
fn element_that_cannot_be_decoded_is_left_out_and_named() {
    let schema = || json!({"type": "object"});
    let mut tools: Vec<Value> = (0..41).map(|n| json!({"name": n.to_string(), "inputSchema": schema()})).collect();
    tools.insert(7, json!({"name": "broken"}));
    tools.push(json!({"inputSchema": schema()}));
    tools.push(json!({"name": "icons", "inputSchema": schema(), "icons": [{"src": "data:,"}, {}]}));
    tools.push(json!({"name": "hints", "inputSchema": schema(), "annotations": {"readOnlyHint": "yes"}}));
    tools.push(json!({"name": 5, "title": "T", "inputSchema": schema()}));
    tools.push(json!(["no object"]));
    let page = decode::<List<Tool>>(&json!({"tools": tools, "nextCursor": "c"})).unwrap();
    assert_eq!(
        (page.elements.len(), page.elements[7].name.as_str(), page.next_cursor.as_deref()),
        (41, "7", Some("c"))
    );
    let expected = [
        (7, Some("broken"), Some("inputSchema")),
        (42, None, Some("name")),
        (43, Some("icons"), Some("icons")),
        (44, Some("hints"), Some("annotations")),
        (45, None, Some("name")),
        (46, None, None),
    ];
    assert_eq!((named(&page.skipped), page.skipped.len()), (expected.to_vec(), 6));
    assert_eq!(page.skipped.named()[0].to_string(), "element 7 (`broken`): `inputSchema` is missing");
    assert_eq!(page.skipped.named()[5].to_string(), "element 46: expected an object");
}

#[test]
fn every_list_of_a_server_leaves_out_what_it_cannot_decode() {
    let named_of = |skipped: &SkippedList| named(skipped).first().map(|one| (one.0, one.1.map(String::from)));
    let one = |name: &str| Some((1, Some(String::from(name))));
    let list = json!([{"uri": "x:1", "name": "a"}, {"uri": "x:2"}, {"uri": "x:3", "name": "c"}]);
    let page = decode::<List<Resource>>(&json!({"resources": list})).unwrap();
    assert_eq!((page.elements.len(), named_of(&page.skipped)), (2, one("x:2")));
    let list = json!([{"uriTemplate": "x:{a}", "name": "a"}, {"uriTemplate": "x:{b}", "name": 1}]);
    let page = decode::<List<ResourceTemplate>>(&json!({"resourceTemplates": list})).unwrap();
    assert_eq!((page.elements.len(), named_of(&page.skipped)), (1, one("x:{b}")));
    let list = json!([{"name": "a"}, {"name": "b", "arguments": [{"name": "x"}, {"required": true}]}]);
    let page = decode::<List<Prompt>>(&json!({"prompts": list})).unwrap();
    assert_eq!((page.elements.len(), named_of(&page.skipped)), (1, one("b")));
    assert_eq!(page.skipped.named()[0].reason, "`arguments`: `name` is missing");
    let values = json!({"completion": {"values": ["a", 1, "b", null]}});
    let completion = decode::<Complete>(&values).unwrap();
    assert_eq!((completion.values.as_slice(), completion.has_more), (&["a".into(), "b".into()][..], false));
    assert_eq!(named(&completion.skipped), [(1, None, None), (3, None, None)]);
    let contents = json!([{"uri": "x:1", "text": "t"}, {"uri": "x:2"}]);
    let read = decode::<resources::Read>(&json!({"contents": contents})).unwrap();
    assert_eq!((read.contents.len(), named_of(&read.skipped)), (1, one("x:2")));
    // A list that is none, and contents with no element left, are the error of the call.
    assert!(decode::<List<Tool>>(&json!({"tools": {}})).is_err() && decode::<List<Prompt>>(&json!({})).is_err());
    assert!(decode::<resources::Read>(&json!({"contents": [{"uri": "x:2"}]})).is_err());
    assert!(decode::<resources::Read>(&json!({"contents": []})).is_ok());
}

#[test]
fn roots_of_a_client_leave_out_what_they_cannot_decode() {
    let roots = json!({"roots": [{"uri": "file:///a"}, "file:///b", {"name": "C"}]});
    let read = Roots::read(object(&roots)).unwrap();
    assert_eq!((read.roots.len(), named(&read.skipped)), (1, vec![(1, None, None), (2, Some("C"), Some("uri"))]));
    assert_eq!(in_answer(&raw(&roots)), read.skipped);
    // The answer of a user is a form, whatever its fields are called.
    let form = json!({"action": "accept", "content": {"type": "text"}});
    assert!(in_answer(&raw(&form)).is_empty() && in_answer(&raw(&json!(1))).is_empty());
}

#[test]
fn block_that_cannot_be_decoded_stays_in_its_place() {
    let text =
        RawJson::parse(r#"[{"type":"text"},"a",null,{"type":"image","data":"AA=="},{"type":"text","text":"t"}]"#);
    let blocks: Value = text.as_ref().unwrap().decode().unwrap();
    let result = decode::<tools::CallTool>(&json!({"content": blocks, "isError": true})).unwrap();
    let is_unknown: Vec<_> = result.content.iter().map(|block| matches!(block, Content::Unknown(_))).collect();
    assert_eq!((is_unknown, result.first_text()), (vec![true, true, true, true, false], Some("t")));
    // A program that passes it on sends what it has received, in every revision.
    for version in ProtocolVersion::ALL {
        let written = result.clone().lower(version).write().get("content");
        assert_eq!(written.map(|written| written.decode()), Some(Ok(blocks.clone())), "{version}");
    }
    let prompt = json!({"messages": [{"role": "user", "content": blocks[0]}]});
    let prompt = decode::<prompts::Get>(&prompt).unwrap();
    assert!(matches!(prompt.messages[0].content, Content::Unknown(_)));
    assert_eq!(prompt.messages[0].content.write(), raw(&blocks[0]));
    let sampled = json!({"role": "assistant", "model": "m", "content": [blocks[0], {"type": "tool_use", "id": "1"}]});
    let read = SampleResult::read(object(&sampled)).unwrap();
    assert!(read.content.iter().all(|block| matches!(block, Block::Content(Content::Unknown(_)))));
    assert_eq!(read.write(ProtocolVersion::V2025_11_25).get("content"), Some(raw(&sampled["content"])));
    assert_eq!(in_answer(&raw(&sampled)).len(), 2);
    let one = json!({"role": "assistant", "model": "m", "content": blocks[0]});
    assert_eq!(SampleResult::read(object(&one)).unwrap().content.len(), 1);
    assert_eq!(in_answer(&raw(&one)).len(), 1);
    // A server gets an error for a request, which names the member: nothing has run.
    let request = json!({"maxTokens": 1, "messages": [{"role": "user", "content": [blocks[0]]}]});
    assert!(SampleRequest::read(object(&request)).is_err());
    // A list that is none is the error of its call.
    assert!(decode::<tools::CallTool>(&json!({"content": {"type": "text"}})).is_err());
}

#[test]
fn members_of_an_unknown_block_can_be_set() {
    let unknown = Content::Unknown(raw(&json!({"type": "new", "x": 1})));
    let set = unknown.meta("k", 1_i64).annotate(&crate::model::content::Annotations::default().priority(1.0));
    assert_eq!(set.annotations().unwrap().priority, Some(1.0));
    assert_eq!(Object::read(&set.write()).unwrap().object("_meta"), Ok(Object::new().with("k", 1_i64)));
    let text = Content::Unknown(raw(&json!("text"))).meta("k", 1_i64);
    assert_eq!((text.write(), text.annotations()), (raw(&json!("text")), Ok(Default::default())));
}

/// The look that copies nothing agrees with the decoding.
#[test]
fn fault_is_found_exactly_if_decoding_fails() {
    let texts = [json!(null), json!("a"), json!(1), json!({}), json!([])];
    let kinds = ["text", "image", "audio", "resource_link", "resource", "other", "tool_use", "tool_result"];
    for kind in kinds.map(Value::from).iter().chain(&texts) {
        for a in &texts {
            for b in &texts {
                let contents = json!({"uri": a, "text": b, "blob": "AA=="});
                let blocks = [
                    json!({"type": kind, "text": a, "data": a, "mimeType": b, "uri": a, "name": b}),
                    json!({"type": kind, "id": a, "name": b, "input": b, "toolUseId": a, "content": b, "text": "t"}),
                    json!({"type": kind, "resource": contents}),
                    json!({"type": kind, "resource": {"uri": "x:", "mimeType": a, "blob": b}}),
                    json!({"type": kind, "resource": a}),
                    a.clone(),
                ];
                for block in blocks.iter().map(raw) {
                    assert_eq!(Content::fault(&block).is_some(), Content::read(&block).is_err(), "{block:?}");
                    assert_eq!(Content::fault(&block), Content::read(&block).err());
                }
                for contents in [contents, json!({"uri": a, "mimeType": b}), a.clone()].iter().map(raw) {
                    let read = Object::read(&contents).and_then(ResourceContents::read);
                    assert_eq!(ResourceContents::fault(&contents), read.err(), "{contents:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_kept_of_skipped_elements_is_bounded() {
    let long = "n".repeat(1 << 20);
    let element = raw(&json!({"name": long, "inputSchema": long}));
    let mut skipped = SkippedList::default();
    let why = DecodeError::new(alloc::format!("`inputSchema`: {long}"));
    (0..5000).for_each(|index| skipped.push(index, &element, &why));
    assert_eq!((skipped.named().len(), skipped.len()), (SkippedList::MAX_NAMED, 5000));
    let size = |one: &SkippedElement| [&one.name, &one.member].into_iter().flatten().map(String::len).sum::<usize>();
    assert!(skipped.named().iter().all(|one| size(one) + one.reason.len() < 700));
    let details: Vec<_> = skipped.details("tools/list").collect();
    assert_eq!((details.len(), details[4].as_str()), (5, "tools/list: 4996 further elements"));
    // What a peer says is shown with escapes.
    let mut hostile = SkippedList::default();
    hostile.push(0, &raw(&json!({"name": "a\u{1b}[2J"})), &DecodeError::new("`x`: \u{1b}]"));
    assert!(!hostile.named()[0].to_string().contains('\u{1b}'));
    // Those of the next page have their positions in the whole list.
    let mut next = SkippedList::default();
    next.push(2, &element, &why);
    let mut both = next.clone();
    both.append(&next, 10);
    assert_eq!((both.named()[1].index, both.len()), (12, 2));
    skipped.append(&next, 5000);
    assert_eq!((skipped.named().len(), skipped.len()), (SkippedList::MAX_NAMED, 5001));
}

#[test]
fn block_of_text_reads_the_same_with_and_without_spaces() {
    let texts = [
        "",
        "a",
        "a\\n\\u00e9",
        "\\\"}",
        "a\",\"text\":\"b",
        "a\",\"text\":1,\"x\":\"",
        "a\",\"type\":\"image",
        "a\",\"annotations\":{\"priority\":1},\"b\":\"",
    ];
    for text in texts {
        let dense = RawJson::parse(format!(r#"{{"type":"text","text":"{text}"}}"#)).unwrap();
        let sparse = RawJson::parse(format!(r#"{{ "type":"text","text":"{text}"}}"#)).unwrap();
        assert_eq!(Content::read(&dense), Content::read(&sparse), "{text}");
        assert_eq!(Content::fault(&dense), Content::fault(&sparse), "{text}");
    }
}
