# The client of `examples/kitchen_client.rs` on the official Python SDK, 1.x.
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import PromptReference


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        order = await client.call_tool("order", {"dish": "soup", "count": 2})
        hours = await client.read_resource("kitchen://hours")
        dish = await client.read_resource("kitchen://dishes/stew")
        prompt = await client.get_prompt("praise", {"dish": "salad"})
        reference = PromptReference(type="ref/prompt", name="praise")
        dishes = await client.complete(reference, {"name": "dish", "value": "s"})
        for text in [order.content[0], hours.contents[0], dish.contents[0], prompt.messages[0].content]:
            print(text.text)
        print(", ".join(dishes.completion.values))


asyncio.run(main())
