"""FastMCP under a mount, as its users run it behind other routes: `PORT`. Starlette redirects `/mcp` to `/mcp/`."""

import sys

import uvicorn
from fastmcp import FastMCP
from starlette.applications import Starlette
from starlette.routing import Mount

server = FastMCP("mounted")


@server.tool(output_schema=None)
def echo(text: str) -> str:
    return text


mcp = server.http_app(path="/")
app = Starlette(routes=[Mount("/mcp", app=mcp)], lifespan=mcp.lifespan)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
