"""The two ends of a trace, on the official Python SDK, 2.x, which makes spans of OpenTelemetry by itself.

`traced.py server` is a server with the tool `tick`. `traced.py client PROGRAM ARGUMENTS...` calls the tool `relay` of that program, within a span
of its own. Both keep their spans in memory, and print them on standard error at their end, as `span TRACE SPAN PARENT NAME`.
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server import MCPServer
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)


async def client(program: list[str]) -> None:
    parameters = StdioServerParameters(command=program[0], args=program[1:])
    with trace.get_tracer("test").start_as_current_span("begin"):
        async with stdio_client(parameters, errlog=sys.stderr) as (reader, writer):
            async with ClientSession(reader, writer) as session:
                await session.initialize()
                print((await session.call_tool("relay", {})).content[0].text)


def server() -> None:
    tools = MCPServer("traced", log_level="ERROR")

    @tools.tool(description="Says tock", structured_output=False)
    async def tick() -> str:
        return "tock"

    tools.run()


if sys.argv[1] == "server":
    server()
else:
    asyncio.run(client(sys.argv[2:]))
for span in exporter.get_finished_spans():
    own, parent = span.context, span.parent.span_id if span.parent else 0
    print(f"span {own.trace_id:032x} {own.span_id:016x} {parent:016x} {span.name}", file=sys.stderr)
