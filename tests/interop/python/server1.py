"""A server on the official Python SDK, 1.x: one tool for everything that can pass between a client and a server."""

import asyncio

from mcp.server.fastmcp import Context, FastMCP
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


@server.tool(description="Counts, reports each step, and pauses so many seconds after it", structured_output=False)
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


if __name__ == "__main__":
    server.run(transport="stdio")
