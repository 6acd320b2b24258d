"""The server of `server1.py` over HTTP."""

from mcp.server.fastmcp import Context
from mcp.server.websocket import websocket_server
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from server1 import count, server
from web import RETRY, offer, options, serve, sse_app, store


def web_socket_app():
    """Serves WebSockets, and tells the end of each."""

    async def opened(socket):
        async with websocket_server(socket.scope, socket.receive, socket.send) as streams:
            await server._mcp_server.run(*streams, server._mcp_server.create_initialization_options())
        print("WebSocket ended", flush=True)

    return Starlette(routes=[WebSocketRoute("/mcp", opened)])


def app():
    if options.sse:
        return sse_app(server._mcp_server)
    return web_socket_app() if options.web_socket else server.streamable_http_app()


if __name__ == "__main__":
    options = options()
    offer(server, Context, count)
    server.settings.stateless_http = options.stateless
    server.settings.json_response = options.json
    if options.store:
        server._event_store = store
        server._retry_interval = RETRY
    serve(app(), options.port)
