//! Dialects of hosts that call tools and know nothing else of MCP: no negotiation, no sessions, no
//! other method. No engine guesses a dialect; the application chooses it.

/// How a client and a server speak over HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Dialect {
    /// As MCP demands.
    #[default]
    Mcp,
    /// Each call of a tool is a POST of the request `tools/call`, without negotiation. Its response
    /// is JSON, or an event stream whose events have types:
    ///
    /// * `result`: an object with some members of the result. The elements of `content` follow
    ///   those of the events before. Any other member replaces its predecessor.
    /// * `complete`: the JSON-RPC response. What its result lacks is taken from the events before.
    /// * `error`: a JSON-RPC error response.
    ///
    /// The last two end the stream.
    ToolStream,
}

/// The messages of a WebSocket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WsDialect {
    /// The messages of MCP, with the subprotocol `mcp`.
    #[default]
    JsonRpc,
    /// Each message of the client is a call of a tool: an object with `id`, `name` and, if it has
    /// any, `arguments`. Those of the server are JSON-RPC messages. No subprotocol, no negotiation.
    BareTool,
}
