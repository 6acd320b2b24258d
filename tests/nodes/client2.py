"""Clients on the official Python SDK, 2.x. MODE is `modern`, `legacy`, or `sse` for HTTP+SSE."""

from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from calls import run


@asynccontextmanager
async def connected(url, mode, word):
    async def answer(_, params):
        return types.ElicitResult(action="accept", content={"word": word})

    transport = sse_client(url) if mode == "sse" else streamable_http_client(url)
    revision = "2026-07-28" if mode == "modern" else "legacy"
    async with Client(transport, mode=revision, elicitation_callback=answer) as client:
        yield client


run(connected)
