"""A server on the official Python SDK, 2.x: one tool for everything that can pass between a client and a server."""

import asyncio
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("interop-python", log_level="ERROR")
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


if __name__ == "__main__":
    server.run(transport="stdio")
