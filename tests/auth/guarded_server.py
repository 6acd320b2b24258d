"""An MCP server on the official Python SDK that accepts the tokens of an authorization server: `guarded_server.py ISSUER`. Writes
`LISTENING URL`, and ends with its standard input."""

import sys

import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

from listening import listen

issuer = sys.argv[1]
listener, base = listen()
url = f"{base}/mcp"
keys = jwt.PyJWKClient(f"{issuer}/jwks")


class Verifier:
    """Accepts the signed access tokens of the issuer for this server."""

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key, algorithms=["ES256"], audience=url, issuer=issuer)
        except jwt.PyJWTError:
            return None
        scopes = claims.get("scope", "").split()
        return AccessToken(
            token=token, client_id=claims["client_id"], scopes=scopes, expires_at=claims["exp"], resource=url, subject=claims["sub"]
        )


settings = AuthSettings(
    issuer_url=issuer, resource_server_url=url, required_scopes=["mcp:basic"], validate_token_resource=True
)
server = MCPServer("guarded", token_verifier=Verifier(), auth=settings)


@server.tool()
def whoami() -> str:
    """Says who calls."""
    token = get_access_token()
    return f"{token.subject} {' '.join(sorted(token.scopes))}"


print(f"LISTENING {url}", flush=True)
config = uvicorn.Config(server.streamable_http_app(), log_level="error")
uvicorn.Server(config).run(sockets=[listener])
