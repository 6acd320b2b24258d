"""A server on FastMCP whose tool runs as a task, by `fastmcp-tasks` with its backend in memory."""

import asyncio

from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = FastMCP("tasks-fastmcp")
server.add_extension(TasksExtension())

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@server.tool(task=True)
async def greet(ctx: Context) -> str | InputRequiredResult:
    answer = (ctx.input_responses or {}).get("who")
    if answer is None:
        params = ElicitRequestFormParams(message="What is your name?", requested_schema=SCHEMA)
        return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)})
    return f"hello {answer.content['name']}"


@server.tool(task=True)
async def forever() -> str:
    await asyncio.Event().wait()
    return "too late"


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
