"""A client on the official Python SDK, 2.x: `client2.py auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of the
program."""

from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel

from heard import heard, logged
from steps import run, web


class Session:
    Error = MCPError
    takes_notes = True
    types = types

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

    def of(self, model, name):
        """A member, by its name on the wire."""
        [field] = [name_ for name_, field in type(model).model_fields.items() if name in (name_, field.alias)]
        return getattr(model, field)

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
    if params.mode == "url":
        heard.asked.append("page")
        heard.pages.append(params)
        return types.ElicitResult(action="accept" if heard.opens else "decline")
    heard.asked.append("user")
    if heard.accept:
        return types.ElicitResult(action="accept", content={"name": "Ann"})
    return types.ElicitResult(action="decline")


def blocks(message):
    return message.content if isinstance(message.content, list) else [message.content]


async def sample(_, params):
    """The model uses the offered tool, and then says what the tool has said."""
    heard.asked.append("model")
    assert blocks(params.messages[0])[0].text == "What is six times seven?"
    [last] = blocks(params.messages[-1])
    if last.type == "tool_result":
        said = types.TextContent(type="text", text=f"{last.tool_use_id} gave {last.content[0].text}")
    elif params.tools:
        said = types.ToolUseContent(type="tool_use", id="use-1", name=params.tools[0].name, input={"a": 6, "b": 7})
        return types.CreateMessageResultWithTools(role="assistant", model="none", content=[said], stop_reason="toolUse")
    else:
        said = types.TextContent(type="text", text="forty-two")
    return types.CreateMessageResult(role="assistant", model="none", content=said)


async def roots(_):
    heard.asked.append("roots")
    return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere", name="the only one")])


async def message(message):
    if isinstance(message, Exception):
        heard.faults.append(message)
        return
    match message:
        case types.ToolListChangedNotification():
            heard.changed.set()
        case types.ResourceUpdatedNotification(params=params):
            heard.updated.put_nowait(str(params.uri))
        case types.ElicitCompleteNotification(params=params):
            heard.completed.append(params.elicitation_id)


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
        logging_callback=logged,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        extensions=[Notes()],
    )
    async with client:
        yield Session(client)


run(connected)
