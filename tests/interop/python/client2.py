"""A client on the official Python SDK, 2.x: `client2.py auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of the
program."""

from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel

from steps import heard, run, web


class Session:
    Error = MCPError
    takes_notes = True

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

    async def resources(self):
        resources = await self.client.list_resources()
        templates = await self.client.list_resource_templates()
        read = await self.client.read_resource("note://one")
        prompts = await self.client.list_prompts()
        return [
            *(str(resource.uri) for resource in resources.resources),
            *(template.uri_template for template in templates.resource_templates),
            *(content.text for content in read.contents),
            *(prompt.name for prompt in prompts.prompts),
        ]

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

    async def ping(self):
        await self.client.send_ping()

    def structured(self, result):
        return result.structured_content

    def failed(self, result):
        return result.is_error


class Note(BaseModel):
    n: int


async def noted(_):
    heard.noted.set()


class Notes(ClientExtension):
    identifier = "org.example/interop"

    def notifications(self):
        return [NotificationBinding(method="notifications/interop", params_type=Note, handler=noted)]


async def elicit(_, params):
    heard.asked.append("user")
    if heard.accept:
        return types.ElicitResult(action="accept", content={"name": "Ann"})
    return types.ElicitResult(action="decline")


async def sample(_, params):
    heard.asked.append("model")
    assert params.messages[0].content.text == "What is six times seven?"
    return types.CreateMessageResult(
        role="assistant", model="none", content=types.TextContent(type="text", text="forty-two")
    )


async def roots(_):
    heard.asked.append("roots")
    return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere", name="the only one")])


async def message(message):
    if isinstance(message, Exception):
        heard.faults.append(message)
    elif isinstance(message, types.ToolListChangedNotification):
        heard.changed.set()


@asynccontextmanager
async def connected(mode, command, arguments):
    client = Client(
        # By default it takes events of 1 MiB at most.
        streamable_http_client(command, max_sse_event_size=4 << 20)
        if web
        else StdioServerParameters(command=command, args=arguments),
        mode={"modern": "2026-07-28", "stateless": "legacy"}.get(mode, mode),
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        message_handler=message,
        extensions=[Notes()],
    )
    async with client:
        yield Session(client)


run(connected)
