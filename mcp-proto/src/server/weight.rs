//! Estimates of the heap memory of a running request, which
//! [`max_running_bytes`](crate::limits::ServerLimits::max_running_bytes) bounds. The estimates
//! follow `running.rs`, the tables of `requests.rs` and `responder.rs`. A value counts as often as
//! these modules copy it.

use super::responder::Responder;
use super::running::{RequestEntry, ServedRequest};
use super::transport::ServedExchange;
use super::watched::Watcher;
use super::{IncomingRequest, RequestState, client};
use crate::auth::Access;
use crate::exchange::RequestHead;
use crate::input::{Inputs, RequestKey};
use crate::model::capabilities::ClientCapabilities;
use crate::model::lifecycle::Implementation;
use crate::rpc::{ErrorObject, Id, RawJson};
use crate::short_set::ShortSet;
use crate::version::Era;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;

/// The memory of shared bytes beside their content.
const SHARED: usize = 48;

/// The factor for the unused room of an ordered table: a node is at least half full.
const SPARE: usize = 2;

/// The memory of the tables for each request, regardless of its content: its entries, and the event
/// for the application.
const TABLES: usize = SPARE
    * (size_of::<(RequestKey, ServedRequest)>() + size_of::<(Id, RequestKey)>() + size_of::<RequestKey>())
    + size_of::<Responder>()
    + size_of::<IncomingRequest>()
    + SPARE * client::ENTRY;

/// Additional memory of the first request: a node of each table, which has room for eleven entries,
/// and a few queues.
pub(super) const FIRST: usize = 11
    * (size_of::<(RequestKey, ServedRequest)>()
        + size_of::<(Id, RequestKey)>()
        + size_of::<RequestKey>()
        + size_of::<ServedExchange>()
        + client::ENTRY)
    + 4096;

/// The memory of an HTTP exchange beside the head of its request. Its one entry in each table
/// occupies a separate node.
const EXCHANGE: usize = SPARE * size_of::<ServedExchange>() + 512;

/// Returns the memory of a running request, in bytes. What its client has declared is a part of its
/// `_meta`, or its session or connection counts it.
pub(super) fn of_request(id: &Id, token: Option<&Id>, text: usize, incoming: &IncomingRequest) -> usize {
    let context = &incoming.context;
    let head = context.http.as_ref().map_or(0, |head| of_head(head) + EXCHANGE);
    // The exchange has its peer, and requests share it.
    let caller = context.principal.as_ref().map_or(0, |principal| principal.0.len());
    let access = context.access.as_ref().map_or(0, |access| of_access(access));
    let method = if let Cow::Owned(method) = &incoming.method { method.capacity() } else { 0 };
    let (params, meta) = (&incoming.params, &incoming.meta);
    let inputs = of_inputs(&incoming.inputs);
    let objects = params.heap_size() + meta.heap_size();
    let shares_text = params.shares_text() || meta.shares_text() || !incoming.inputs.is_empty();
    let text = if shares_text { text + SHARED } else { 0 };
    let handed = method + caller + objects + inputs + of_state(incoming.state.as_ref());
    let kept = match context.version.era() {
        // The next round needs these copies. It shares the params.
        Era::Legacy => size_of::<RequestEntry>() + method + caller,
        Era::Modern => 0,
    };
    let responder = method + caller + inputs;
    // The server keeps the id as received, and copies it twice.
    let ids = of_id(id) + 2 * id.size() + token.map_or(0, of_id);
    let all = TABLES + ids + text + head + access + handed + kept + responder;
    // The allocator may round up the requested size.
    all + all / 32
}

/// Returns the memory of a response of a client while its request runs, in bytes. The tables
/// contain it once, and the next round contains it twice.
pub(super) fn of_input(name: &str, input: &Result<RawJson, ErrorObject>) -> usize {
    3 * (name.len() + SPARE * size_of::<(String, Result<RawJson, ErrorObject>)>()) + of_outcome(input)
}

fn of_outcome(input: &Result<RawJson, ErrorObject>) -> usize {
    SHARED
        + match input {
            Ok(result) => result.as_bytes().len(),
            // A copy of an error includes its text.
            Err(error) => 3 * error.message.len() + error.data.as_ref().map_or(0, |data| data.as_bytes().len()),
        }
}

fn of_id(id: &Id) -> usize {
    match id {
        Id::Int(_) => 0,
        Id::Text(text) => text.capacity(),
    }
}

/// The values share the text of the params, except the texts of errors.
fn of_inputs(inputs: &Inputs) -> usize {
    let entry = SPARE * size_of::<(String, Result<RawJson, ErrorObject>)>();
    inputs.keys().map(|name| entry + name.capacity()).sum()
}

fn of_state(state: Option<&RequestState>) -> usize {
    match state {
        Some(RequestState::Sealed(text)) => text.capacity(),
        // The state is a slice of a text that already counts.
        Some(RequestState::Kept(_)) | None => 0,
    }
}

fn of_head(head: &RequestHead) -> usize {
    let method = if let Cow::Owned(method) = &head.method { method.capacity() } else { 0 };
    SHARED + size_of::<RequestHead>() + method + SHARED + head.target.len() + head.headers.heap_size()
}

/// Requests with the same token may share it.
fn of_access(access: &Access) -> usize {
    SHARED + size_of::<Access>() + access.heap_size()
}

/// Returns the memory of a client's declaration, in bytes, without its text.
pub(super) fn of_declared(client: Option<&Implementation>, capabilities: &ClientCapabilities) -> usize {
    SHARED + of_capabilities(capabilities) + client.map_or(0, |client| SHARED + of_implementation(client))
}

/// Returns the memory of a subscription, in bytes. `entry`: the memory of its entry in its own
/// table.
pub(super) fn of_listen(id: &Id, entry: usize) -> usize {
    let tables = entry + size_of::<RequestKey>() + size_of::<(Id, RequestKey)>();
    // Two tables contain the id.
    SPARE * tables + 2 * of_id(id) + EXCHANGE
}

/// Returns the memory of a watched URI, in bytes: the text, its entries in the tables of the server
/// and of its client, and that of an update that waits.
pub(super) fn of_watched(uri: &str) -> usize {
    let entries = 3 * size_of::<Arc<str>>() + size_of::<ShortSet<Watcher>>();
    SHARED + uri.len() + SPARE * entries
}

fn of_implementation(client: &Implementation) -> usize {
    size_of::<Implementation>() + client.heap_size()
}

fn of_capabilities(capabilities: &ClientCapabilities) -> usize {
    size_of::<ClientCapabilities>() + capabilities.heap_size()
}
