"""An MCP server on FastMCP whose authorization server accepts the grants of an identity provider: `fastmcp_identity.py ISSUER`. Its client is
`app`, its access tokens live for 5 s, and a grant works once. Writes `LISTENING URL`, and ends with its standard input."""

import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth import IdentityAssertion, OAuthProxy
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from key_value.aio.stores.memory import MemoryStore

from listening import listen

issuer = sys.argv[1]
keys = f"{issuer}/jwks"
listener, base = listen()
provider = OAuthProxy(
    upstream_authorization_endpoint=f"{issuer}/auth",
    upstream_token_endpoint=f"{issuer}/token",
    upstream_client_id="app",
    token_verifier=JWTVerifier(jwks_uri=keys, issuer=issuer, algorithm="ES256", required_scopes=["mcp:basic"]),
    base_url=base,
    client_storage=MemoryStore(),
    jwt_signing_key="only for tests",
    identity_assertion=IdentityAssertion(
        trusted_issuers=[issuer],
        jwks_uris={issuer: keys},
        algorithm="ES256",
        required_scopes=["mcp:basic"],
        access_token_expiry_seconds=5,
    ),
)
server = FastMCP("guarded", auth=provider)


@server.tool
def whoami() -> str:
    """Says who calls."""
    token = get_access_token()
    return f"{token.subject} {' '.join(sorted(token.scopes))}"


print(f"LISTENING {base}/mcp", flush=True)
config = uvicorn.Config(server.http_app(), log_level="error", lifespan="on")
uvicorn.Server(config).run(sockets=[listener])
