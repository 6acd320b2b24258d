//! Tasks of the store that a server takes to work on them.

use super::super::entry::NewTask;
use super::super::record::{StoredStage, TaskRecord, TaskRequest};
use super::super::{RESULT, TaskEntry, TaskQuestion, TaskSlot, TaskStage, UPDATE};
use crate::exchange::{ExchangeId, Peer};
use crate::input::{LegacyInputRequest, RequestKey};
use crate::rpc::{Id, Object};
use crate::server::client::{Bound, ClientIdentity};
use crate::server::incoming::{FirstRound, RequestState};
use crate::server::keys::{ReplyTo, TaskKey};
use crate::server::requests::Requests;
use crate::server::running::{RequestEntry, RequestStage, ServedRequest, TaskPlace};
use crate::server::state_keys::KeyAge;
use crate::server::wire::Wire;
use crate::server::{Context, IncomingRequest, Server, weight};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

impl Server {
    /// This server works on a task from now on. The request that has caused it goes on.
    pub(super) fn adopt_for(&mut self, key: RequestKey, record: TaskRecord, version: u64) {
        let Some(running) = self.requests.get(key) else {
            self.requests.adopt(&mut self.wire, record, version, None);
            return;
        };
        let (exchange, method) = (running.exchange, running.request().map(|request| request.method.clone()));
        let id = record.id.clone();
        let task = self.requests.adopt(&mut self.wire, record.clone(), version, Some(exchange));
        match method.as_deref() {
            Some(RESULT) => {
                if let Some(running) = self.requests.get_mut(key) {
                    running.stage = RequestStage::Result(task);
                }
                self.wire.env.tasks.changes(task);
            }
            Some(UPDATE) => self.answer_task_request(key, Object::new()),
            // A request that has found the server of the task lost.
            _ => self.go_on_with_task(key, TaskRecord { id, ..record }, version, None),
        }
    }
}

impl Requests {
    /// Takes a task of the store to work on it: its handler runs, or its questions wait for
    /// answers.
    fn adopt(&mut self, wire: &mut Wire, record: TaskRecord, stored: u64, x: Option<ExchangeId>) -> TaskKey {
        let key = self.mint_key();
        let task_key = TaskKey(key.number());
        let shared = Arc::clone(self.shared());
        let identity = record.owner.clone().map_or_else(
            || x.map_or(ClientIdentity::Connection(u64::MAX), |x| wire.env.client_on(x, None)),
            ClientIdentity::Principal,
        );
        let slot = TaskSlot::adopted(task_key, record.id.clone(), Arc::clone(&shared));
        let TaskRequest { params, meta, inputs, rounds, state, origin, .. } = record.request.clone();
        let incoming = IncomingRequest {
            method: "tools/call".into(),
            params,
            meta,
            context: Context {
                version: record.version,
                declared: record.request.declaration(record.version),
                peer: Arc::new(Peer::default()),
                http: None,
                principal: record.owner.clone(),
                access: None,
                session: None,
                wants_progress: false,
            },
            inputs: inputs.clone(),
            state: state.clone().map(RequestState::Kept),
            nonce: None,
            rounds,
            first: Some(FirstRound { shared, key: RequestKey::new(origin) }),
            key_age: KeyAge::Current,
            may_be_task: true,
            wanted_task: None,
            task: Some(slot),
        };
        let id = Id::Text(record.id.as_str().into());
        let size = weight::of_request(&id, None, incoming.params.heap_size(), &incoming);
        let client = wire.env.shares.take(&identity, Bound::Requests, 1);
        wire.env.shares.add(client, Bound::RunningBytes, size);
        wire.env.shares.add(client, Bound::Tasks, 1);
        let running = ServedRequest {
            exchange: x.unwrap_or(ExchangeId(0)),
            client,
            reply_to: ReplyTo::Task(None),
            id,
            version: record.version,
            batch: None,
            token: None,
            log_level: None,
            dropped_logs: 0,
            progress: None,
            held: None,
            since: wire.env.now,
            spent: Duration::ZERO,
            stage: RequestStage::Waiting,
            place: TaskPlace::Taken(task_key),
            entry: Some(Box::new(RequestEntry { incoming, router: None, inputs, rounds })),
            size,
        };
        self.table_insert(key, running);
        let new = NewTask {
            id: record.id.clone(),
            owner: record.owner.clone(),
            client,
            version: record.version,
            session: None,
            request: key,
            ttl: record.ttl,
            poll: record.poll,
            reruns: record.reruns,
        };
        let entry = TaskEntry::adopted(new, &record, stored, wire.env.now, wire.env.config.origin_unix);
        wire.env.add_task(task_key, entry);
        match record.stage {
            StoredStage::Asking { questions, state } => {
                let question =
                    |(name, request): (String, LegacyInputRequest)| (name, TaskQuestion { request, sent: None });
                let questions: BTreeMap<String, TaskQuestion> = questions.into_iter().map(question).collect();
                wire.env.adopt_stage(task_key, TaskStage::Asking { request: key, questions, state });
            }
            StoredStage::Working | StoredStage::Ended(_) => self.enter_again(&mut wire.env, key, state),
        }
        task_key
    }
}
