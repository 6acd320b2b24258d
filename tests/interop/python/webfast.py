"""The server of `serverfast.py` over HTTP."""

from serverfast import server
from web import options, serve

if __name__ == "__main__":
    options = options()
    serve(server.http_app(path="/mcp", json_response=options.json, stateless_http=options.stateless), options.port)
