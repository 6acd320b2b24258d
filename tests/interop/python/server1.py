"""A server on the official Python SDK, 1.x: one tool for everything that can pass between a client and a server."""

import asyncio
from weakref import WeakKeyDictionary

from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = FastMCP("interop-python", log_level="ERROR")
cancellations = asyncio.Semaphore(0)


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


@server.tool(description="Adds two integers")
async def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool(description="Says the same", structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(
    description="Counts, reports each step, and pauses so many seconds after it",
    annotations=types.ToolAnnotations(readOnlyHint=True),
    structured_output=False,
)
async def count(steps: int, ctx: Context, pause: float = 0) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(pause)
    return f"counted to {steps}"


@server.tool(description="Asks for a name and greets", structured_output=False)
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    if answer.action == "accept":
        return f"hello {answer.data.name}"
    return f"no name: {answer.action}"


@server.tool(description="Asks a language model", structured_output=False)
async def sample(ctx: Context) -> str:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))
    answer = await ctx.session.create_message([question], max_tokens=20)
    return f"the model said: {answer.content.text}"


@server.tool(description="Asks for the roots", structured_output=False)
async def roots(ctx: Context) -> str:
    answer = await ctx.session.list_roots()
    return "roots: " + ", ".join(str(root.uri) for root in answer.roots)


@server.tool(description="Never ends", structured_output=False)
async def wait() -> str:
    try:
        await asyncio.Event().wait()
    finally:
        cancellations.release()
    return "unreachable"


@server.tool(description="Waits until a call of wait was cancelled", structured_output=False)
async def cancelled(within: float = 5) -> str:
    await asyncio.wait_for(cancellations.acquire(), within)
    return "1 cancelled"


@server.tool(description="Fails", structured_output=False)
async def fail() -> str:
    raise ValueError("this tool always fails")


@server.tool(description="Says that the list of tools has changed", structured_output=False)
async def note(ctx: Context) -> str:
    await ctx.session.send_tool_list_changed()
    return "noted"


@server.resource("note://one", mime_type="text/plain")
async def one() -> str:
    return "the first note"


@server.resource("note://bytes", mime_type="application/octet-stream")
async def numbers() -> bytes:
    return bytes([0, 1, 2, 255])


@server.resource("greet://{name}")
async def greeted(name: str) -> str:
    return f"hello {name}"


@server.prompt()
async def greeting(name: str) -> str:
    return f"Say hello to {name}."


@server.completion()
async def complete(ref, argument, context):
    return types.Completion(values=[name for name in ("Ann", "Anton", "Bob") if name.startswith(argument.value)])


# The level of each session: the SDK does not compare it with those of messages.
levels = WeakKeyDictionary()
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@server._mcp_server.set_logging_level()
async def set_level(level: types.LoggingLevel):
    levels[server._mcp_server.request_context.session] = level


@server.tool(description="Logs two messages", structured_output=False)
async def log(ctx: Context) -> str:
    least = LEVELS.index(levels.get(ctx.session, "debug"))
    for level, message in (("info", "low"), ("warning", "high")):
        if LEVELS.index(level) >= least:
            await ctx.log(level, message, logger_name="interop")
    return "logged"


subscribed = WeakKeyDictionary()


@server._mcp_server.subscribe_resource()
async def subscribe(uri):
    subscribed.setdefault(server._mcp_server.request_context.session, set()).add(str(uri))


@server._mcp_server.unsubscribe_resource()
async def unsubscribe(uri):
    subscribed.get(server._mcp_server.request_context.session, set()).discard(str(uri))


@server.tool(description="Changes the first note", structured_output=False)
async def touch() -> str:
    for session, uris in list(subscribed.items()):
        if "note://one" in uris:
            await session.send_resource_updated("note://one")
    return "touched"


@server.tool(description="Adds a tool, a prompt and a resource", structured_output=False)
async def grow(ctx: Context) -> str:
    @server.tool(structured_output=False)
    async def late() -> str:
        return "came later"

    server.prompt("late")(late)
    server.resource("note://late")(late)
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_prompt_list_changed()
    await ctx.session.send_resource_list_changed()
    return "grown"


MULTIPLY = types.Tool(
    name="multiply",
    inputSchema={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)


@server.tool(description="Asks a language model that uses a tool", structured_output=False)
async def consult(ctx: Context) -> str:
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))]
    choice = types.ToolChoice(mode="required")
    answer = await ctx.session.create_message(messages, max_tokens=20, tools=[MULTIPLY], tool_choice=choice)
    used = answer.content[0] if isinstance(answer.content, list) else answer.content
    product = TextContent(type="text", text=str(used.input["a"] * used.input["b"]))
    result = types.ToolResultContent(type="tool_result", toolUseId=used.id, content=[product])
    messages += [SamplingMessage(role="assistant", content=[used]), SamplingMessage(role="user", content=[result])]
    answer = await ctx.session.create_message(messages, max_tokens=20, tools=[MULTIPLY])
    said = answer.content[0] if isinstance(answer.content, list) else answer.content
    return f"the model said: {said.text}"


PAGE = "https://example.org/page"


@server.tool(description="Asks the user to open a page", structured_output=False)
async def page(ctx: Context) -> str:
    answer = await ctx.elicit_url("Please log in.", PAGE, "page-1")
    if answer.action == "accept":
        await ctx.session.send_elicit_complete("page-1")
    return f"page: {answer.action}"


passed = []


@server.tool(description="Refuses the first call until a page is complete", structured_output=False)
async def gate() -> str:
    if not passed:
        passed.append(True)
        params = types.ElicitRequestURLParams(message="Please log in.", url=PAGE, elicitationId="gate-1")
        raise UrlElicitationRequiredError([params])
    return "let in"


if __name__ == "__main__":
    server.run(transport="stdio")
