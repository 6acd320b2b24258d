"""What the servers of `web1.py` and `web2.py` have in common: `PORT [--stateless] [--json] [--store]`, or `PORT --sse` for HTTP+SSE,
or with `mcp` 1.x `PORT --web-socket`.

Each tells its answers as lines `METHOD STATUS`, with ` after ID` where the client has asked for the rest of a stream, and the end of each
stream that was asked for as `GET ended`. `--store`: it keeps what it sends, so that a stream that was cut can be resumed.
"""

import argparse
import asyncio
import os
from collections import Counter

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import EventMessage, EventStore
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

# How long a client is asked to wait before it resumes a stream, in milliseconds.
RETRY = 100


class Store(EventStore):
    """Everything that was sent, by stream."""

    def __init__(self):
        self.events = []
        self.begun = Counter()
        self.changed = asyncio.Condition()

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        if message is None:
            async with self.changed:
                self.begun[stream_id] += 1
                self.changed.notify_all()
        return f"{stream_id}/{len(self.events)}"

    async def replay_events_after(self, last_event_id, send_callback):
        stream, _, number = last_event_id.rpartition("/")
        for at, (stream_id, message) in enumerate(list(self.events), 1):
            if at > int(number) and stream_id == stream and message is not None:
                await send_callback(EventMessage(message, f"{stream_id}/{at}"))
        return stream

    async def resumed(self, stream, times):
        """Waits until a stream was resumed so many times."""
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: self.begun[stream] > times), 10)


store = Store()
# The transport over HTTP+SSE.
sse = None
tasks = []


def offer(server, Context, count):
    """Adds the tools that there are over HTTP only. `Context` is that of the SDK, `count` the tool of that name."""

    @server.tool(
        description="Closes its own stream so many times, and waits each time until it is resumed", structured_output=False
    )
    async def poll(times: int, ctx: Context) -> str:
        for n in range(1, times + 1):
            await ctx.report_progress(n, times)
            await ctx.close_sse_stream()
            await store.resumed(str(ctx.request_id), n)
        # What the client does not see of the end it is to ask for once more.
        await ctx.close_sse_stream()
        return f"polled {times} times"

    @server.tool(description="Does what count does, and may not be asked to twice", structured_output=False)
    async def tally(steps: int, ctx: Context, pause: float = 0) -> str:
        return await count(steps, ctx, pause)

    @server.tool(description="Closes the stream of what belongs to no call", structured_output=False)
    async def hush(ctx: Context) -> str:
        await ctx.close_standalone_sse_stream()
        return "hushed"

    @server.tool(description="Forgets all sessions once this was answered", structured_output=False)
    async def forget(ctx: Context) -> str:
        if sse:
            # The streams of the sessions remain open.
            forgotten = len(sse._read_stream_writers)
            sse._read_stream_writers.clear()
            return f"forgot {forgotten}"
        sessions = server.session_manager._server_instances
        ended = dict(sessions)
        sessions.clear()

        async def end():
            await asyncio.sleep(0.1)
            for session in ended.values():
                await session.terminate()

        tasks.append(asyncio.create_task(end()))
        return f"forgot {len(ended)}"


def sse_app(server):
    """Serves HTTP+SSE. `server` is the lower one of the SDK."""
    global sse
    sse = SseServerTransport("/messages/")

    async def opened(request):
        async with sse.connect_sse(request.scope, request.receive, request._send) as streams:
            await server.run(*streams, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", opened, methods=["GET"]), Mount("/messages/", sse.handle_post_message)])


def telling(app):
    """The same application, which tells each answer."""

    async def told(scope, receive, send):
        async def noted(message):
            if message["type"] == "http.response.start":
                resumed = [value.decode() for name, value in scope["headers"] if name == b"last-event-id"]
                print(scope["method"], message["status"], *(f"after {last}" for last in resumed), flush=True)
            await send(message)

        await app(scope, receive, noted if scope["type"] == "http" else send)
        if scope.get("method") == "GET":
            print("GET ended", flush=True)

    return told


def options():
    """What the command line says."""
    words = argparse.ArgumentParser()
    words.add_argument("port", type=int)
    for flag in ("--stateless", "--json", "--store", "--sse", "--web-socket"):
        words.add_argument(flag, action="store_true")
    return words.parse_args()


def serve(app, port):
    folder = os.environ.get("INTEROP_TLS")
    tls = {"ssl_certfile": f"{folder}/cert.pem", "ssl_keyfile": f"{folder}/key.pem"} if folder else {}
    uvicorn.run(telling(app), host="127.0.0.1", port=port, log_level="warning", **tls)
