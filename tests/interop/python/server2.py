"""A server on the official Python SDK, 2.x: one tool for everything that can pass between a client and a server."""

import asyncio
from typing import Annotated
from weakref import WeakKeyDictionary

import mcp_types as types

from mcp.server import MCPServer
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

HINTS = {method: CacheHint(ttl_ms=60_000, scope="public") for method in CACHEABLE_METHODS}
server = MCPServer("interop-python", log_level="ERROR", cache_hints=HINTS)
cancellations = asyncio.Semaphore(0)


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


@server.tool(description="Adds two integers", annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
async def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool(description="Says the same", structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(
    description="Counts, reports each step, and pauses so many seconds after it",
    annotations=ToolAnnotations(read_only_hint=True),
    structured_output=False,
)
async def count(steps: int, ctx: Context, pause: float = 0) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(pause)
    return f"counted to {steps}"


async def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool(description="Asks for a name and greets", structured_output=False)
async def greet(answer: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    if isinstance(answer, AcceptedElicitation):
        return f"hello {answer.data.name}"
    return f"no name: {answer.action}"


async def ask_model() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))
    return Sample([question], max_tokens=20)


@server.tool(description="Asks a language model", structured_output=False)
async def sample(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    return f"the model said: {answer.content.text}"


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool(description="Asks for the roots", structured_output=False)
async def roots(answer: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
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
    raise ToolError("this tool always fails")


@server.tool(description="Says that the list of tools has changed", structured_output=False)
async def note(ctx: Context) -> str:
    # To whoever listens: the first has no effect in the revision with subscriptions, the second in those without.
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
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


async def set_level(ctx, params):
    levels[ctx.session._connection] = params.level
    return types.EmptyResult()


@server.tool(description="Logs two messages", structured_output=False)
async def log(ctx: Context) -> str:
    least = LEVELS.index(levels.get(ctx.session._connection, "debug"))
    for level, message in (("info", "low"), ("warning", "high")):
        if LEVELS.index(level) >= least:
            await ctx.log(level, message, logger_name="interop")
    return "logged"


subscribed = WeakKeyDictionary()


async def subscribe(ctx, params):
    subscribed.setdefault(ctx.session._connection, set()).add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    subscribed.get(ctx.session._connection, set()).discard(params.uri)
    return types.EmptyResult()


@server.tool(description="Changes the first note", structured_output=False)
async def touch(ctx: Context) -> str:
    # The first for the revision with subscriptions, the others for those without.
    await ctx.notify_resource_updated("note://one")
    for connection, uris in list(subscribed.items()):
        if "note://one" in uris:
            await connection.send_resource_updated("note://one")
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
    # The first have no effect in the revision with subscriptions, these in those without.
    await ctx.notify_tools_changed()
    await ctx.notify_prompts_changed()
    await ctx.notify_resources_changed()
    return "grown"


MULTIPLY = types.Tool(
    name="multiply",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)


QUESTION = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))


def first(answer):
    return answer.content[0] if isinstance(answer.content, list) else answer.content


async def ask_tool() -> Sample:
    return Sample([QUESTION], max_tokens=20, tools=[MULTIPLY], tool_choice=types.ToolChoice(mode="required"))


async def ask_again(answer: Annotated[types.CreateMessageResultWithTools, Resolve(ask_tool)]) -> Sample:
    used = first(answer)
    product = TextContent(type="text", text=str(used.input["a"] * used.input["b"]))
    result = types.ToolResultContent(type="tool_result", tool_use_id=used.id, content=[product])
    messages = [SamplingMessage(role="assistant", content=[used]), SamplingMessage(role="user", content=[result])]
    return Sample([QUESTION, *messages], max_tokens=20, tools=[MULTIPLY])


@server.tool(description="Asks a language model that uses a tool", structured_output=False)
async def consult(answer: Annotated[types.CreateMessageResultWithTools, Resolve(ask_again)]) -> str:
    return f"the model said: {first(answer).text}"


PAGE = "https://example.org/page"


@server.tool(description="Asks the user to open a page", structured_output=False)
async def page(ctx: Context) -> str | types.InputRequiredResult:
    if ctx.protocol_version >= "2026-07-28":
        answer = (ctx.input_responses or {}).get("page")
        if answer is None:
            params = types.ElicitRequestURLParams(message="Please log in.", url=PAGE)
            return types.InputRequiredResult(input_requests={"page": types.ElicitRequest(params=params)})
        return f"page: {answer.action}"
    answer = await ctx.elicit_url("Please log in.", PAGE, "page-1")
    if answer.action == "accept":
        await ctx.session.send_elicit_complete("page-1")
    return f"page: {answer.action}"


passed = []


@server.tool(description="Refuses the first call until a page is complete", structured_output=False)
async def gate() -> str:
    if not passed:
        passed.append(True)
        params = types.ElicitRequestURLParams(message="Please log in.", url=PAGE, elicitation_id="gate-1")
        raise UrlElicitationRequiredError([params])
    return "let in"


# What the SDK leaves to programs in older revisions.
lowlevel = server._lowlevel_server
lowlevel.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
lowlevel.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
lowlevel.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


if __name__ == "__main__":
    server.run(transport="stdio")
