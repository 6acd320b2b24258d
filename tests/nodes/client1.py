"""Clients on the official Python SDK, 1.x. MODE is `legacy`, or `sse` for HTTP+SSE."""

from contextlib import asynccontextmanager

from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from calls import run


@asynccontextmanager
async def connected(url, mode, word):
    async def answer(_, params):
        return types.ElicitResult(action="accept", content={"word": word})

    transport = sse_client(url) if mode == "sse" else streamable_http_client(url)
    async with transport as streams, ClientSession(*streams[:2], elicitation_callback=answer) as session:
        await session.initialize()
        yield session


run(connected)
