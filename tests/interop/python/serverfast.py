"""A server on FastMCP, the package of that name: one tool for everything that can pass between a client and a server."""

import asyncio

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import InputRequiredResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = FastMCP("interop-fastmcp")
cancellations = asyncio.Semaphore(0)
READ_ONLY = types.ToolAnnotations(read_only_hint=True)
PAGE = "https://example.org/page"


class Sum(BaseModel):
    sum: int


def modern(ctx):
    return ctx.request_context.protocol_version >= "2026-07-28"


def known(ctx, name):
    """The answer of the client in the revision that asks with results."""
    return (ctx.input_responses or {}).get(name)


def needed(name, request):
    return InputRequiredResult(input_requests={name: request})


@server.tool(annotations=READ_ONLY)
async def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool(output_schema=None)
async def echo(text: str) -> str:
    return text


async def counted(steps: int, ctx: Context, pause: float = 0) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
        await asyncio.sleep(pause)
    return f"counted to {steps}"


server.tool(counted, name="count", annotations=READ_ONLY, output_schema=None)
# As the one before, and may not be asked to twice.
server.tool(counted, name="tally", output_schema=None)


@server.tool(output_schema=None)
async def greet(ctx: Context) -> str | InputRequiredResult:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = types.ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
    if not modern(ctx):
        answer = await ctx.session.elicit_form(params.message, schema, related_request_id=ctx.request_id)
    elif (answer := known(ctx, "name")) is None:
        return needed("name", types.ElicitRequest(params=params))
    return f"hello {answer.content['name']}" if answer.action == "accept" else f"no name: {answer.action}"


QUESTION = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))
MULTIPLY = types.Tool(
    name="multiply",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)


async def ask_model(ctx, name, messages, **tools):
    """The answer of the model, or the result that asks it."""
    if not modern(ctx):
        related = ctx.request_id
        return await ctx.session.create_message(messages, max_tokens=20, related_request_id=related, **tools)
    if (answer := known(ctx, name)) is not None:
        return answer
    params = types.CreateMessageRequestParams(messages=messages, max_tokens=20, **tools)
    return needed(name, types.CreateMessageRequest(params=params))


def first(answer):
    return answer.content[0] if isinstance(answer.content, list) else answer.content


@server.tool(output_schema=None)
async def sample(ctx: Context) -> str | InputRequiredResult:
    answer = await ask_model(ctx, "model", [QUESTION])
    return answer if isinstance(answer, InputRequiredResult) else f"the model said: {first(answer).text}"


@server.tool(output_schema=None)
async def consult(ctx: Context) -> str | InputRequiredResult:
    # In the revision that asks with results, each round has only the answers to the one before.
    answer = known(ctx, "second")
    if answer is None:
        answer = await ask_model(
            ctx, "first", [QUESTION], tools=[MULTIPLY], tool_choice=types.ToolChoice(mode="required")
        )
        if isinstance(answer, InputRequiredResult):
            return answer
        used = first(answer)
        product = TextContent(type="text", text=str(used.input["a"] * used.input["b"]))
        result = types.ToolResultContent(type="tool_result", tool_use_id=used.id, content=[product])
        messages = [SamplingMessage(role="assistant", content=[used]), SamplingMessage(role="user", content=[result])]
        answer = await ask_model(ctx, "second", [QUESTION, *messages], tools=[MULTIPLY])
    return answer if isinstance(answer, InputRequiredResult) else f"the model said: {first(answer).text}"


@server.tool(output_schema=None)
async def roots(ctx: Context) -> str | InputRequiredResult:
    if not modern(ctx):
        answer = await ctx.session.list_roots()
    elif (answer := known(ctx, "roots")) is None:
        return needed("roots", types.ListRootsRequest())
    return "roots: " + ", ".join(str(root.uri) for root in answer.roots)


@server.tool(output_schema=None)
async def page(ctx: Context) -> str | InputRequiredResult:
    if not modern(ctx):
        answer = await ctx.session.elicit_url("Please log in.", PAGE, "page-1", related_request_id=ctx.request_id)
        if answer.action == "accept":
            await ctx.session.send_elicit_complete("page-1")
    elif (answer := known(ctx, "page")) is None:
        params = types.ElicitRequestURLParams(message="Please log in.", url=PAGE)
        return needed("page", types.ElicitRequest(params=params))
    return f"page: {answer.action}"


passed = []


@server.tool(output_schema=None)
async def gate() -> str:
    if not passed:
        passed.append(True)
        params = types.ElicitRequestURLParams(message="Please log in.", url=PAGE, elicitation_id="gate-1")
        raise UrlElicitationRequiredError([params])
    return "let in"


@server.tool(output_schema=None)
async def wait() -> str:
    try:
        await asyncio.Event().wait()
    finally:
        cancellations.release()
    return "unreachable"


@server.tool(output_schema=None)
async def cancelled(within: float = 5) -> str:
    await asyncio.wait_for(cancellations.acquire(), within)
    return "1 cancelled"


@server.tool(output_schema=None)
async def fail() -> str:
    raise ToolError("this tool always fails")


@server.tool(output_schema=None)
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


@server.prompt
async def greeting(name: str) -> str:
    return f"Say hello to {name}."


@server.completion
async def complete(ref, argument, context):
    return [name for name in ("Ann", "Anton", "Bob") if name.startswith(argument.value)]


@server.tool(output_schema=None)
async def log(ctx: Context) -> str:
    await ctx.log("low", "info", "interop")
    await ctx.log("high", "warning", "interop")
    return "logged"


@server.tool(output_schema=None)
async def touch(ctx: Context) -> str:
    await ctx.session.send_resource_updated("note://one")
    return "touched"


@server.tool(output_schema=None)
async def grow(ctx: Context) -> str:
    async def late() -> str:
        return "came later"

    server.tool(late, output_schema=None)
    server.prompt(late)
    server.resource("note://late")(late)
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_prompt_list_changed()
    await ctx.session.send_resource_list_changed()
    return "grown"


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
