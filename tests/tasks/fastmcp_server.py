"""A server on FastMCP whose tool runs as a task, by `fastmcp-tasks` with its backend in memory."""

import asyncio

from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from pydantic import BaseModel

server = FastMCP("tasks-fastmcp")
server.add_extension(TasksExtension())


class Name(BaseModel):
    name: str


@server.tool(task=True)
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else "no name"


@server.tool(task=True)
async def forever() -> str:
    await asyncio.Event().wait()
    return "too late"


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
