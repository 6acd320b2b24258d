//! What a running request holds on the heap: the estimate that
//! [`max_running_bytes`](crate::limits::ServerLimits::max_running_bytes) bounds. It follows the
//! tables of `requests.rs` and `responder.rs`: what they copy is counted as often as they copy it.

use super::era::{Admitted, ErrorReply};
use super::listen::Listen;
use super::requests::{Entry, Running};
use super::responder::{Responder, may_ask};
use super::seal::Inputs;
use super::shares::{self, Bound, Client, Full};
use super::{Exchange, Incoming, RequestState, Server};
use crate::exchange::RequestHead;
use crate::input::RequestKey;
use crate::model::lifecycle::{ClientCapabilities, Implementation};
use crate::rpc::{ErrorObject, Id, Object, RawJson, Request};
use crate::version::Era;
use alloc::string::String;

/// What shared bytes cost beside their content.
const SHARED: usize = 48;

/// How much of the room of an ordered table its entries may leave unused: a node is at least half
/// full.
const SPARE: usize = 2;

/// What the tables hold for each request, whatever it says: its entries, and what goes to the
/// application.
const TABLES: usize = SPARE
    * (size_of::<(RequestKey, Running)>() + size_of::<(Id, RequestKey)>() + size_of::<RequestKey>())
    + size_of::<Responder>()
    + size_of::<Incoming>()
    + SPARE * shares::ENTRY;

/// What the first request takes more: a node of each table, which has room for eleven entries, and
/// a few queues.
pub(super) const FIRST: usize = 11
    * (size_of::<(RequestKey, Running)>()
        + size_of::<(Id, RequestKey)>()
        + size_of::<RequestKey>()
        + size_of::<Exchange>()
        + shares::ENTRY)
    + 4096;

/// What the exchange of a request over HTTP holds beside its head. Its one entry in each table has
/// a node of its own.
const EXCHANGE: usize = SPARE * size_of::<Exchange>() + 512;

impl Server {
    /// Memory that the requests hold which are neither answered nor cancelled, in bytes: an
    /// estimate, never below what is held and at most twice as much. Handlers may hold more. At
    /// most [`max_running_bytes`](crate::limits::ServerLimits::max_running_bytes).
    pub fn running_bytes(&self) -> usize {
        match self.env.shares.all(Bound::RunningBytes) {
            0 => 0,
            held => FIRST + held,
        }
    }

    /// Makes room for what a request of this client holds.
    pub(super) fn check_size(&mut self, client: &Client, admitted: &Admitted) -> Result<(), ErrorReply> {
        let full = |full: Full| full.reject("the server has no room for the request");
        self.make_room(client, Bound::RunningBytes, admitted.size).map_err(full)
    }
}

/// What a request holds once it runs. `lasts`: what it refers to belongs to a session or a
/// connection, which counts it.
pub(super) fn of_request(request: &Request, token: Option<&Id>, incoming: &Incoming, lasts: bool) -> usize {
    let context = &incoming.context;
    let text = request.params.as_ref().map_or(0, |params| params.as_bytes().len() + SHARED);
    let head = context.http.as_ref().map_or(0, |head| of_head(head) + EXCHANGE);
    let declared = match lasts {
        true => 0,
        false => of_declared(context.client.as_deref(), &context.capabilities),
    };
    let caller = context.peer.name.as_ref().map_or(0, String::capacity)
        + context.principal.as_ref().map_or(0, |principal| principal.0.capacity());
    let method = incoming.method.capacity();
    let (params, meta) = (&incoming.params, &incoming.meta);
    let inputs = of_inputs(&incoming.inputs);
    let objects = params.heap_size() + meta.heap_size();
    let handed = method + caller + objects + inputs + of_state(incoming.state.as_ref());
    let kept = match context.version.era() {
        // To be handed out again when its client has answered.
        Era::Legacy => size_of::<Entry>() + method + caller + params.clone_size() + meta.clone_size(),
        // What a sealed state is bound to.
        Era::Modern if may_ask(&incoming.method) => params.clone_size(),
        Era::Modern => 0,
    };
    let responder = method + caller + inputs;
    // It is kept as it came, and copied twice.
    let ids = of_id(&request.id) + 2 * request.id.size() + token.map_or(0, of_id);
    let all = TABLES + ids + text + head + declared + handed + kept + responder;
    // What is counted is what was asked of the allocator, which may round it up.
    all + all / 32
}

/// What an answer of a client holds for as long as its request runs: in the tables, and twice in
/// what is handed out again.
pub(super) fn of_input(name: &str, input: &Result<RawJson, ErrorObject>) -> usize {
    3 * (name.len() + SPARE * size_of::<(String, Result<RawJson, ErrorObject>)>()) + of_outcome(input)
}

fn of_outcome(input: &Result<RawJson, ErrorObject>) -> usize {
    SHARED
        + match input {
            Ok(result) => result.as_bytes().len(),
            // Its text is copied with it.
            Err(error) => 3 * error.message.len() + error.data.as_ref().map_or(0, |data| data.as_bytes().len()),
        }
}

fn of_id(id: &Id) -> usize {
    match id {
        Id::Int(_) => 0,
        Id::Text(text) => text.capacity(),
    }
}

/// The values share the text of the params, but for the texts of errors.
fn of_inputs(inputs: &Inputs) -> usize {
    let entry = SPARE * size_of::<(String, Result<RawJson, ErrorObject>)>();
    inputs.keys().map(|name| entry + name.capacity()).sum()
}

fn of_state(state: Option<&RequestState>) -> usize {
    match state {
        Some(RequestState::Sealed(text)) => text.capacity(),
        // A slice of something that is counted.
        Some(RequestState::Kept(_)) | None => 0,
    }
}

fn of_head(head: &RequestHead) -> usize {
    SHARED + size_of::<RequestHead>() + head.method.capacity() + head.target.capacity() + head.headers.heap_size()
}

/// What a client says of itself, once it is read; its text does not count.
pub(super) fn of_declared(client: Option<&Implementation>, capabilities: &ClientCapabilities) -> usize {
    SHARED + of_capabilities(capabilities) + client.map_or(0, |client| SHARED + of_implementation(client))
}

/// What a subscription holds.
pub(super) fn of_listen(id: &Id) -> usize {
    let tables = size_of::<(RequestKey, Listen)>() + size_of::<RequestKey>() + size_of::<(Id, RequestKey)>();
    // The id stands in two tables.
    SPARE * tables + 2 * of_id(id) + EXCHANGE
}

fn of_implementation(client: &Implementation) -> usize {
    let Implementation { name, version, title, other } = client;
    let texts = name.capacity() + version.capacity() + title.as_ref().map_or(0, String::capacity);
    size_of::<Implementation>() + texts + other.heap_size()
}

fn of_capabilities(capabilities: &ClientCapabilities) -> usize {
    let ClientCapabilities { elicitation, sampling, roots, other } = capabilities;
    let named = [elicitation, sampling, roots].into_iter().flatten().map(Object::heap_size);
    size_of::<ClientCapabilities>() + named.sum::<usize>() + other.heap_size()
}
