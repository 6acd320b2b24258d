"""A client on the official Python SDK, 1.x: `client1.py legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of the program."""

from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.websocket import websocket_client

from heard import heard, logged
from steps import LARGE, run, sse, web, web_socket


class Session:
    Error = McpError
    # It knows no notification but those of its own.
    takes_notes = False

    types = types
    # Its WebSocket takes no message of more than 1 MiB.
    large = LARGE // 2 if web_socket else LARGE

    def __init__(self, session, revision):
        self.session = self.client = session
        self.agreed = revision

    def revision(self):
        return self.agreed

    async def list(self):
        names, cursor = [], None
        while True:
            page = await self.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            names += [tool.name for tool in page.tools]
            cursor = page.nextCursor
            if cursor is None:
                return names

    async def call(self, name, arguments, told=None):
        return await self.session.call_tool(name, arguments, progress_callback=told)

    async def call_to_cancel(self, name, arguments):
        # This SDK does not tell the server that nobody waits any more: a program that wants it to know says so itself.
        self.cancelling = self.session._request_id
        return await self.call(name, arguments)

    async def cancel(self, call):
        params = types.CancelledNotificationParams(requestId=self.cancelling, reason="no longer needed")
        await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        call.cancel()

    async def changed(self, change):
        heard.changed.clear()
        await change()
        await heard.changed.wait()

    async def updated(self, uri, change):
        await self.session.subscribe_resource(uri)
        await change()
        changed = await heard.updated.get()
        await self.session.unsubscribe_resource(uri)
        return changed

    def of(self, model, name):
        """A member, by its name on the wire."""
        return getattr(model, name)

    async def ping(self):
        await self.session.send_ping()

    def structured(self, result):
        return result.structuredContent

    def failed(self, result):
        return result.isError


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
        said = types.TextContent(type="text", text=f"{last.toolUseId} gave {last.content[0].text}")
    elif params.tools:
        said = types.ToolUseContent(type="tool_use", id="use-1", name=params.tools[0].name, input={"a": 6, "b": 7})
        return types.CreateMessageResultWithTools(role="assistant", model="none", content=[said], stopReason="toolUse")
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
    match getattr(message, "root", None):
        case types.ToolListChangedNotification():
            heard.changed.set()
        case types.ResourceUpdatedNotification(params=params):
            heard.updated.put_nowait(str(params.uri))
        case types.ElicitCompleteNotification(params=params):
            heard.completed.append(params.elicitationId)


@asynccontextmanager
async def connected(_, command, arguments):
    if sse:
        transport = sse_client(command)
    elif web_socket:
        transport = websocket_client(command)
    elif web:
        transport = streamable_http_client(command)
    else:
        transport = stdio_client(StdioServerParameters(command=command, args=arguments))
    async with (
        transport as streams,
        ClientSession(
            *streams[:2],
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
            message_handler=message,
            logging_callback=logged,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        ) as session,
    ):
        result = await session.initialize()
        yield Session(session, result.protocolVersion)


run(connected)
