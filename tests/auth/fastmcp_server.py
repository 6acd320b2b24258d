"""An MCP server on FastMCP, guarded by an authorization server in the same process, which asks the user nothing. Its argument is the lifetime
of access tokens in seconds. Writes `LISTENING URL`, and ends with its standard input."""

import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers import in_memory

from listening import listen

in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[1])

listener, base = listen()
provider = in_memory.InMemoryOAuthProvider(
    base_url=base,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["mcp:basic"]),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["mcp:basic"],
)
server = FastMCP("guarded", auth=provider)


@server.tool
def whoami() -> str:
    """Says who calls."""
    return "mcp:basic"


print(f"LISTENING {base}/mcp", flush=True)
config = uvicorn.Config(server.http_app(), log_level="error", lifespan="on")
uvicorn.Server(config).run(sockets=[listener])
