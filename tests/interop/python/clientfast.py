"""A client on FastMCP, the package of that name: `clientfast.py auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place
of the program."""

from contextlib import asynccontextmanager

import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp import MCPError
from mcp.client.subscriptions import listen

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
        self.fast = client
        # The names that the SDK below gives to the same.
        self.client = self
        self.list_resources = client.list_resources_mcp
        self.list_resource_templates = client.list_resource_templates_mcp
        self.read_resource = client.read_resource_mcp
        self.list_prompts = client.list_prompts_mcp
        self.get_prompt = client.get_prompt_mcp
        self.complete = client.complete_mcp
        self.list_tools = client.list_tools_mcp
        self.call_tool = client.call_tool_mcp
        self.set_logging_level = client.set_logging_level
        self.ping = client.ping

    def revision(self):
        return self.fast.protocol_version

    async def list(self):
        return [tool.name for tool in await self.fast.list_tools()]

    async def call(self, name, arguments, told=None):
        return await self.fast.call_tool_mcp(name, arguments, progress_handler=told)

    call_to_cancel = call

    async def cancel(self, call):
        call.cancel()

    async def changed(self, change):
        if self.revision() < "2026-07-28":
            heard.changed.clear()
            await change()
            await heard.changed.wait()
            return
        # FastMCP leaves it to the session of the SDK below.
        async with listen(self.fast.session, tools_list_changed=True) as subscription:
            await change()
            await anext(subscription)

    async def updated(self, uri, change):
        session = self.fast.session
        if self.revision() >= "2026-07-28":
            async with listen(session, resource_subscriptions=[uri]) as subscription:
                await change()
                return (await anext(subscription)).uri
        await session.subscribe_resource(uri)
        await change()
        changed = await heard.updated.get()
        await session.unsubscribe_resource(uri)
        return changed

    def structured(self, result):
        return result.structured_content

    def failed(self, result):
        return result.is_error


async def answer(_, __, params, context):
    return await elicit(context, params)


async def sampled(_, params, context):
    return await sample(context, params)


async def rooted(context):
    return (await roots(context)).roots


@asynccontextmanager
async def connected(mode, command, arguments):
    if sse:
        transport = SSETransport(command)
    elif web:
        transport = StreamableHttpTransport(command)
    else:
        transport = StdioTransport(command, arguments, keep_alive=False)
    client = Client(
        transport,
        mode={"modern": "2026-07-28", "stateless": "legacy"}.get(mode, mode),
        elicitation_handler=answer,
        sampling_handler=sampled,
        sampling_capabilities=SAMPLES,
        roots=rooted,
        message_handler=message,
        log_handler=logged,
        extensions=[Notes()],
    )
    async with client:
        yield Session(client)


run(connected)
