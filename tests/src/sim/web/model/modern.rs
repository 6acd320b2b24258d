//! The server of 2026-07-28: one POST for each request, no sessions, no ids, input requests in
//! rounds, changes on a subscription.

use super::{Model, Place};
use crate::sim::fault::Fault;
use crate::sim::net::Net;
use crate::sim::web::site::Conn;
use crate::sim::web::wire::{self, Request};
use serde_json::{Value, json};

impl Model {
    pub(super) fn modern_post(&mut self, conn: Conn, request: &Request, net: &mut Net) {
        let body = request.json();
        let Some(id) = body.get("id").cloned() else {
            return self.reply(conn, wire::response(202, &[], ""), net);
        };
        let method = body["method"].as_str().unwrap_or_default().to_string();
        let shaky = if method == "server/discover" { 100 } else { 1500 };
        let mut more = vec![];
        if method == "tools/call" {
            for _ in 0..7 {
                more.extend([Fault::HeaderMismatch, Fault::MissingCapability]);
            }
            more.extend([Fault::BadEvent, Fault::ControlEvent].repeat(2));
            more.extend([Fault::ForeignId, Fault::Twice, Fault::CommentsOnly].repeat(2));
        }
        let fault = self.draw(shaky, &more, net);
        if let Some(fault) = fault
            && self.spoil(conn, fault, &body, net)
        {
            return;
        }
        let result = match method.as_str() {
            "server/discover" => json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
            }),
            "tools/list" => json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}),
            "tools/call" => return self.modern_call(conn, &body, fault, net),
            "subscriptions/listen" => return self.subscribe(conn, &body, net),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                return self.json(conn, 404, &[], &json!({"jsonrpc": "2.0", "id": id, "error": error}), net);
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        if net.chaos.rng.per_mille(self.flavour.streams) {
            let stream = self.open(None);
            self.attach(stream, conn, 0, &[], net);
            self.answer_on(stream, &answer, net);
        } else {
            self.json(conn, 200, &[], &answer, net);
        }
    }

    fn modern_call(&mut self, conn: Conn, body: &Value, fault: Option<Fault>, net: &mut Net) {
        let round = body.pointer("/params/requestState").and_then(Value::as_str).and_then(|state| state.parse().ok());
        let slow = fault == Some(Fault::Slow);
        let place = if fault.is_some_and(|fault| fault != Fault::Slow) || net.chaos.rng.per_mille(self.flavour.streams)
        {
            let stream = self.open(None);
            self.attach(stream, conn, 0, &[], net);
            if let Some(stream) = self.streams.get_mut(&stream) {
                stream.mute = fault.filter(|fault| *fault == Fault::CommentsOnly);
                stream.extra = fault;
            }
            Place::Stream(stream)
        } else {
            Place::Json(conn)
        };
        self.run(body, round.unwrap_or(0), place, None, slow, net);
    }

    fn subscribe(&mut self, conn: Conn, body: &Value, net: &mut Net) {
        let stream = self.open(None);
        self.attach(stream, conn, 0, &[], net);
        let id = body["id"].clone();
        let filter = body.pointer("/params/notifications").cloned().unwrap_or_else(|| json!({}));
        let params = json!({"notifications": filter, "_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
        self.emit(stream, &note, net);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.subscription = Some(id);
        }
    }
}
