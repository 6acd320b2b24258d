"""The server of `server2.py` over HTTP."""

from mcp.server.mcpserver import Context

from server2 import count, server
from web import RETRY, offer, options, serve, sse_app, store

if __name__ == "__main__":
    options = options()
    offer(server, Context, count)
    if options.sse:
        app = sse_app(server._lowlevel_server)
    else:
        app = server.streamable_http_app(
            stateless_http=options.stateless,
            json_response=options.json,
            event_store=store if options.store else None,
            retry_interval=RETRY,
        )
    serve(app, options.port)
