//! The configuration of a client and the types of connections, in a recording. Every field is
//! listed, so that a new one does not compile until it is added here.

use super::value::{Value, fields, member, name, names, unknown};
use crate::client::{
    CancelSignal, ClientConfig, Compat, HttpTarget, IdPolicy, ListenerEnd, ListenerStart, ListenerTime, Malformed,
    Policy, Repeat, Restart, Resume, SseDecode, Target, Verdict,
};
use crate::exchange::{
    Closed, Credentials, Endpoint, ExitStatus, Group, Headers, Inherit, Origin, Peer, PeerKind, Program,
};
use crate::hook::MessageHook;
use crate::limits::{ClientLimits, FrameLimits, Limits, ServerLimits};
use crate::model::lifecycle::{ClientCapabilities, Implementation};
use crate::rpc::{DecodeError, Object, RawJson};
use crate::version::{ProtocolVersion, Versions};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fields!(ClientConfig {
    target,
    info,
    capabilities,
    policy,
    versions,
    verdict,
    timeout,
    reset_on_progress,
    max_total,
    connect_timeout,
    probe_timeout,
    initialize_timeout,
    ping,
    ping_timeout,
    restart_after_probe,
    restart,
    headers,
    listener_idle,
    resume,
    watch_tools,
    authorize,
    repeat,
    origin_unix,
    on_message,
    compat: Compat {
        listener,
        listener_start,
        listener_end,
        sse_decode,
        retry_plain_403,
        cancel_signal,
        ids,
        malformed,
        match_text_ids,
        fail_on_defect,
    },
    limits,
} as {
    target,
    info,
    capabilities,
    policy,
    versions,
    verdict,
    timeout,
    reset_on_progress,
    max_total,
    connect_timeout,
    probe_timeout,
    initialize_timeout,
    ping,
    ping_timeout,
    restart_after_probe,
    restart,
    headers,
    listener,
    listener_start,
    listener_idle,
    listener_end,
    resume,
    sse_decode,
    watch_tools,
    authorize,
    retry_plain_403,
    repeat,
    cancel_signal,
    ids,
    malformed,
    match_text_ids,
    fail_on_defect,
    origin_unix,
    on_message,
    limits,
});

fields!(Limits { client, server, frame });

fields!(ClientLimits {
    max_calls,
    max_unsent,
    max_inputs,
    max_rounds,
    max_retired,
    max_queued_events,
    max_queued_event_bytes,
    exit_grace,
    drain_time,
    drain_items,
    drain_bytes,
    session_end_time,
    max_pages,
    max_tools,
});

fields!(ServerLimits {
    client_shares,
    max_running_requests,
    max_running_bytes,
    max_running_per_exchange,
    max_exchanges,
    max_unsent,
    max_backlog,
    max_held,
    write_stall,
    end_grace,
    max_questions,
    max_rounds,
    ask_timeout,
    away_timeout,
    state_lifetime,
    max_state,
    max_state_params,
    handshake_timeout,
    max_client_data,
    max_client_data_total,
    max_sessions,
    session_idle,
    session_sweep,
    session_start,
    max_streams,
    max_streams_per_client,
    history_events,
    history_bytes,
    history_total,
    history_keep,
    admit_timeout,
    handler_deadline,
    page_size,
    max_queued_events,
    max_queued_event_bytes,
});

fields!(FrameLimits {
    max_line,
    max_event,
    max_depth,
    max_batch,
    max_id,
    max_head,
    max_headers,
    max_target,
    max_request_body,
    max_response_body,
    max_read_ahead,
    open_timeout,
    head_timeout,
    body_timeout,
    write_stall,
    min_rate,
    response_timeout,
    idle_timeout,
    linger_timeout,
    exit_timeout,
    terminate_timeout,
    max_connections_per_origin,
    max_idle_per_origin,
    max_streams_per_origin,
});

fields!(Implementation { name, version, title, other });
fields!(ClientCapabilities { elicitation, sampling, roots, other });
fields!(Program { command, args, current_dir, inherit, env, group });
fields!(Origin { tls, host, port });
fields!(Credentials { pid, uid, gid });
fields!(ExitStatus { code, signal, stderr });
fields!(Verdict { version });
fields!(Restart { waits, jitter, max_starts, within });

names!(Policy { Auto = "auto", Legacy = "legacy", Modern = "modern" });
names!(CancelSignal { Server = "wire", LocalOnly = "local" });
names!(Malformed { Skip = "skip", Fatal = "fatal" });
names!(ListenerStart { AfterInitialized = "after-initialized", BeforeInitialized = "before-initialized", Never = "never" });
names!(ListenerEnd { Resume = "resume", Stop = "stop", Ignore = "ignore" });
names!(SseDecode { Skip = "skip", Reject = "reject" });
names!(Repeat { Safe = "safe", Always = "always", Never = "never" });
names!(Group { Own = "own", Inherit = "inherit" });
names!(PeerKind { Given = "given", Unix = "unix", Tcp = "tcp" });

impl Value for Peer {
    /// A member without a value is omitted, as in recordings of earlier versions, which do not have
    /// it.
    fn write(&self) -> RawJson {
        let Self { name, kind, address, credentials, connection } = self;
        let kind = (*kind != PeerKind::default()).then(|| kind.write());
        let address = address.as_ref().map(|address| address.to_string().write());
        let credentials = credentials.as_ref().map(Value::write);
        let connection = connection.as_ref().map(Value::write);
        let peer = Object::new().with("name", name.write()).with_opt("kind", kind);
        let peer = peer.with_opt("address", address).with_opt("credentials", credentials);
        peer.with_opt("connection", connection).into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let address = optional::<String>(&object, "address")?.map(|text| text.parse());
        Ok(Self {
            name: member(&object, "name")?,
            kind: optional(&object, "kind")?.unwrap_or_default(),
            address: address.transpose().map_err(|_| DecodeError::new("`address`: not an IP address"))?,
            credentials: optional(&object, "credentials")?,
            connection: optional(&object, "connection")?,
        })
    }
}

/// Reads a member that may be absent.
fn optional<T: Value>(object: &Object, key: &str) -> Result<Option<T>, DecodeError> {
    object.get(key).map(|_| member(object, key)).transpose()
}

impl Value for MessageHook {
    /// Records only that there is a hook. Its refusals are recorded as they happen.
    fn write(&self) -> RawJson {
        true.into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        bool::read(json).map(|_| Self::new(|_| Ok(())))
    }
}

impl Value for Headers {
    fn write(&self) -> RawJson {
        self.iter().map(|(name, value)| (String::from(name), String::from(value))).collect::<Vec<_>>().write()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let fields = Vec::<(String, String)>::read(json)?;
        Ok(fields.into_iter().fold(Self::new(), |headers, (name, value)| headers.with(&name, value)))
    }
}

impl Value for ListenerTime {
    fn write(&self) -> RawJson {
        match self {
            Self::Quarter => "quarter".into(),
            Self::After(time) => Object::new().with("after", time.write()).into(),
            Self::Unlimited => "unlimited".into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        match name(json).as_deref() {
            Ok("quarter") => Ok(Self::Quarter),
            Ok("unlimited") => Ok(Self::Unlimited),
            Ok(other) => Err(unknown(other)),
            Err(_) => member(&Object::read(json)?, "after").map(Self::After),
        }
    }
}

impl Value for Resume {
    fn write(&self) -> RawJson {
        match self {
            Self::Progress => "progress".into(),
            Self::Strict(attempts) => Object::new().with("strict", attempts.write()).into(),
            Self::Never => "never".into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        match name(json).as_deref() {
            Ok("progress") => Ok(Self::Progress),
            Ok("never") => Ok(Self::Never),
            Ok(other) => Err(unknown(other)),
            Err(_) => member(&Object::read(json)?, "strict").map(Self::Strict),
        }
    }
}

impl Value for Target {
    fn write(&self) -> RawJson {
        match self {
            Self::Duplex(endpoint) => endpoint.write(),
            Self::Http(target) => Object::new().with("url", target.write()).into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if let Ok(url) = Object::read(json).and_then(|object| member(&object, "url")) {
            return Ok(Self::Http(url));
        }
        Endpoint::read(json).map(Self::Duplex)
    }
}

impl Value for HttpTarget {
    fn write(&self) -> RawJson {
        let object = Object::new().with("origin", self.origin.write()).with("path", self.path.write());
        object.with("original", self.original.write()).into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let (origin, path, original) =
            (member(&object, "origin")?, member(&object, "path")?, member(&object, "original")?);
        Self::from_parts(origin, path, original).ok_or_else(|| DecodeError::new("HTTP is not compiled in"))
    }
}

impl Value for Endpoint {
    fn write(&self) -> RawJson {
        match self {
            Self::Program(program) => Object::new().with("program", program.write()).into(),
            Self::Origin(origin) => Object::new().with("origin", origin.write()).into(),
            Self::Unix(path) => Object::new().with("unix", path.write()).into(),
            Self::Given => "given".into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if let Ok(name) = name(json) {
            return if name == "given" { Ok(Self::Given) } else { Err(unknown(&name)) };
        }
        let object = Object::read(json)?;
        match object.iter().next() {
            Some(("program", program)) => Value::read(program).map(Self::Program),
            Some(("origin", origin)) => Value::read(origin).map(Self::Origin),
            Some(("unix", path)) => Value::read(path).map(Self::Unix),
            other => Err(unknown(other.map_or("", |(key, _)| key))),
        }
    }
}

impl Value for Inherit {
    fn write(&self) -> RawJson {
        match self {
            Self::All => "all".into(),
            Self::Only(names) => names.write(),
            Self::Nothing => "nothing".into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        match name(json).as_deref() {
            Ok("all") => Ok(Self::All),
            Ok("nothing") => Ok(Self::Nothing),
            Ok(other) => Err(unknown(other)),
            Err(_) => Vec::<String>::read(json).map(Self::Only),
        }
    }
}

impl Value for IdPolicy {
    fn write(&self) -> RawJson {
        match self {
            Self::Counter => "counter".into(),
            Self::Snowflake { node } => Object::new().with("node", node.write()).into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        match name(json).as_deref() {
            Ok("counter") => Ok(Self::Counter),
            Ok(other) => Err(unknown(other)),
            Err(_) => member(&Object::read(json)?, "node").map(|node| Self::Snowflake { node }),
        }
    }
}

impl Value for ProtocolVersion {
    fn write(&self) -> RawJson {
        self.as_str().into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let name = name(json)?;
        Self::parse(&name).ok_or_else(|| unknown(&name))
    }
}

impl Value for Versions {
    fn write(&self) -> RawJson {
        self.newest_first().collect::<Vec<_>>().write()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        Vec::read(json).map(Self::new)
    }
}

impl Value for Closed {
    fn write(&self) -> RawJson {
        match self {
            Self::Eof => "eof".into(),
            Self::Reset => "reset".into(),
            Self::Refused => "refused".into(),
            Self::Unresolved => "unresolved".into(),
            Self::Aborted => "aborted".into(),
            Self::Timeout => "timeout".into(),
            Self::Unreachable(why) => Object::new().with("unreachable", why.write()).into(),
            Self::Exited(status) => Object::new().with("exited", status.write()).into(),
            Self::Denied(reason) => Object::new().with("denied", reason.write()).into(),
            Self::Broken(how) => Object::new().with("broken", how.write()).into(),
        }
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        if let Ok(name) = name(json) {
            return Ok(match name.as_str() {
                "eof" => Self::Eof,
                "reset" => Self::Reset,
                "refused" => Self::Refused,
                "unresolved" => Self::Unresolved,
                "aborted" => Self::Aborted,
                "timeout" => Self::Timeout,
                other => return Err(unknown(other)),
            });
        }
        let object = Object::read(json)?;
        match object.iter().next() {
            Some(("unreachable", why)) => Value::read(why).map(Self::Unreachable),
            Some(("exited", status)) => Value::read(status).map(Self::Exited),
            Some(("denied", reason)) => Value::read(reason).map(Self::Denied),
            Some(("broken", how)) => Value::read(how).map(Self::Broken),
            other => Err(unknown(other.map_or("", |(key, _)| key))),
        }
    }
}
