"""The server of `serverfast.py` over HTTP."""

from serverfast import server
from web import options, serve

if __name__ == "__main__":
    options = options()
    if options.sse:
        app = server.http_app(transport="sse")
    else:
        app = server.http_app(path="/mcp", json_response=options.json, stateless_http=options.stateless)
    serve(app, options.port)
