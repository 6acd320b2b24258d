"""A client on the official Python SDK that logs in at a server and calls a tool: `guarded_client.py URL`. Writes `PAGE URL`, reads the URL
of the redirect from its standard input, and writes `SAID TEXT`."""

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

url = sys.argv[1]


class Storage:
    """Keeps a login in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def show(page: str) -> None:
    print(f"PAGE {page}", flush=True)


async def redirected() -> AuthorizationCodeResult:
    line = await asyncio.to_thread(sys.stdin.readline)
    query = parse_qs(urlsplit(line.strip()).query)
    return AuthorizationCodeResult(**{name: query[name][0] for name in ("code", "state", "iss") if name in query})


async def main() -> None:
    metadata = OAuthClientMetadata(
        client_name="python", redirect_uris=["http://127.0.0.1:1/callback"], token_endpoint_auth_method="none"
    )
    login = OAuthClientProvider(url, metadata, Storage(), redirect_handler=show, callback_handler=redirected)
    async with create_mcp_http_client(auth=login) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            result = await client.call_tool("whoami", {})
            print(f"SAID {result.content[0].text}", flush=True)


asyncio.run(main())
