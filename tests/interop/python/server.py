"""A small server on the official Python SDK: an addition, a slow tool with progress, one that asks, one that never ends, one that fails."""

import asyncio
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("interop-python", log_level="ERROR")


@server.tool(description="Adds two integers", annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
async def add(a: int, b: int) -> int:
    return a + b


@server.tool(description="Counts, and reports each step", structured_output=False)
async def count(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


class Name(BaseModel):
    name: str


async def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool(description="Asks for a name and greets", structured_output=False)
async def greet(answer: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    if isinstance(answer, AcceptedElicitation):
        return f"hello {answer.data.name}"
    return f"no name: {answer.action}"


@server.tool(description="Never ends", structured_output=False)
async def wait() -> str:
    await asyncio.Event().wait()
    return "unreachable"


@server.tool(description="Fails", structured_output=False)
async def fail() -> str:
    raise ValueError("this tool always fails")


if __name__ == "__main__":
    server.run(transport="stdio")
