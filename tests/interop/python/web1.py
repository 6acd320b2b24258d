"""The server of `server1.py` over HTTP."""

from mcp.server.fastmcp import Context

from server1 import count, server
from web import RETRY, offer, options, serve, sse_app, store

if __name__ == "__main__":
    options = options()
    offer(server, Context, count)
    server.settings.stateless_http = options.stateless
    server.settings.json_response = options.json
    if options.store:
        server._event_store = store
        server._retry_interval = RETRY
    serve(sse_app(server._mcp_server) if options.sse else server.streamable_http_app(), options.port)
