"""A client on the official Python SDK, 1.x: `client1.py legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of the program."""

from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from steps import heard, run, web


class Session:
    Error = McpError
    # It knows no notification but those of its own.
    takes_notes = False

    def __init__(self, session, revision):
        self.session = session
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

    async def resources(self):
        resources = await self.session.list_resources()
        templates = await self.session.list_resource_templates()
        read = await self.session.read_resource("note://one")
        prompts = await self.session.list_prompts()
        return [
            *(str(resource.uri) for resource in resources.resources),
            *(template.uriTemplate for template in templates.resourceTemplates),
            *(content.text for content in read.contents),
            *(prompt.name for prompt in prompts.prompts),
        ]

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

    async def ping(self):
        await self.session.send_ping()

    def structured(self, result):
        return result.structuredContent

    def failed(self, result):
        return result.isError


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
    elif isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
        heard.changed.set()


@asynccontextmanager
async def connected(_, command, arguments):
    stdio = StdioServerParameters(command=command, args=arguments)
    async with (
        streamable_http_client(command) if web else stdio_client(stdio) as streams,
        ClientSession(
            *streams[:2],
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
            message_handler=message,
        ) as session,
    ):
        result = await session.initialize()
        yield Session(session, result.protocolVersion)


run(connected)
