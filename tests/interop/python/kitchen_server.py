# The server of `examples/kitchen_server.rs` on the official Python SDK, 1.x.
from mcp.server.fastmcp import FastMCP
from mcp.types import Completion, PromptReference

DISHES = ["salad", "soup", "stew"]
server = FastMCP("kitchen", log_level="ERROR")


@server.tool(description="Orders dishes")
def order(dish: str, count: int) -> str:
    return f"{count} of {dish}"


@server.resource("kitchen://hours", mime_type="text/plain")
def hours() -> str:
    return "11 to 22"


@server.resource("kitchen://dishes/{dish}", mime_type="text/plain")
def dish_of_the_day(dish: str) -> str:
    if dish not in DISHES:
        raise ValueError("no such dish")
    return f"{dish} of the day"


@server.prompt()
def praise(dish: str) -> str:
    return f"Praise the {dish}."


@server.completion()
async def complete(ref, argument, context):
    if isinstance(ref, PromptReference) and ref.name == "praise" and argument.name == "dish":
        return Completion(values=[dish for dish in DISHES if dish.startswith(argument.value)])


server.run()
