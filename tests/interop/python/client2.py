"""A client on the official Python SDK, 2.x: `client2.py auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of the
program."""

from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from answers2 import SAMPLES, Notes, elicit, message, of, roots, sample
from heard import heard, logged
from steps import LARGE, run, sse, web


class Session:
    Error = MCPError
    takes_notes = True
    types = types
    of = staticmethod(of)
    # Over HTTP+SSE it takes events of 1 MiB at most.
    large = LARGE // 2 if sse else LARGE

    def __init__(self, client):
        self.client = client

    def revision(self):
        return self.client.protocol_version

    async def list(self):
        names, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return names

    async def call(self, name, arguments, told=None):
        return await self.client.call_tool(name, arguments, progress_callback=told)

    call_to_cancel = call

    async def cancel(self, call):
        call.cancel()

    async def changed(self, change):
        if self.revision() < "2026-07-28":
            heard.changed.clear()
            await change()
            await heard.changed.wait()
            return
        async with self.client.listen(tools_list_changed=True) as subscription:
            await change()
            await anext(subscription)

    async def updated(self, uri, change):
        if self.revision() >= "2026-07-28":
            async with self.client.listen(resource_subscriptions=[uri]) as subscription:
                await change()
                return (await anext(subscription)).uri
        await self.client.subscribe_resource(uri)
        await change()
        changed = await heard.updated.get()
        await self.client.unsubscribe_resource(uri)
        return changed

    async def ping(self):
        await self.client.send_ping()

    def structured(self, result):
        return result.structured_content

    def failed(self, result):
        return result.is_error


@asynccontextmanager
async def connected(mode, command, arguments):
    if sse:
        transport = sse_client(command)
    elif web:
        # By default it takes events of 1 MiB at most.
        transport = streamable_http_client(command, max_sse_event_size=4 << 20)
    else:
        transport = StdioServerParameters(command=command, args=arguments)
    client = Client(
        transport,
        mode={"modern": "2026-07-28", "stateless": "legacy"}.get(mode, mode),
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        message_handler=message,
        logging_callback=logged,
        sampling_capabilities=SAMPLES,
        extensions=[Notes()],
    )
    async with client:
        yield Session(client)


run(connected)
