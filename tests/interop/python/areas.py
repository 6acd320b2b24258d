"""The steps of a client with what our server offers beside tools that answer."""

import asyncio
import base64

from heard import SOON, heard, same, text

LEVEL = "io.modelcontextprotocol/logLevel"
MODERN = "2026-07-28"


async def resources(session, _):
    listed = [(str(one.uri), session.of(one, "mimeType")) for one in (await session.client.list_resources()).resources]
    same(listed, [("note://bytes", "application/octet-stream"), ("note://one", "text/plain")])


async def read(session, _):
    [content] = (await session.client.read_resource("note://one")).contents
    same((str(content.uri), session.of(content, "mimeType"), content.text), ("note://one", "text/plain", "the first note"))


async def blob(session, _):
    [content] = (await session.client.read_resource("note://bytes")).contents
    same(list(base64.b64decode(content.blob)), [0, 1, 2, 255])


async def templates(session, _):
    listed = session.of(await session.client.list_resource_templates(), "resourceTemplates")
    same([session.of(one, "uriTemplate") for one in listed], ["greet://{name}"])


async def template(session, _):
    same((await session.client.read_resource("greet://Ann")).contents[0].text, "hello Ann")


async def missing(session, wanted):
    try:
        result = await session.client.read_resource("note://none")
    except session.Error as why:
        same((why.error.code, why.error.data), (-32602 if wanted >= MODERN else -32002, {"uri": "note://none"}))
        return
    raise AssertionError(f"{result!r}, expected an error")


async def prompts(session, _):
    [prompt] = (await session.client.list_prompts()).prompts
    same((prompt.name, [(one.name, one.required) for one in prompt.arguments]), ("greeting", [("name", True)]))


async def prompt(session, _):
    [message] = (await session.client.get_prompt("greeting", {"name": "Ann"})).messages
    same((message.role, message.content.text), ("user", "Say hello to Ann."))


async def completion(session, _):
    ref = session.types.PromptReference(type="ref/prompt", name="greeting")
    result = await session.client.complete(ref, {"name": "name", "value": "An"})
    same(result.completion.values, ["Ann", "Anton"])


async def variable(session, _):
    ref = session.types.ResourceTemplateReference(type="ref/resource", uri="greet://{name}")
    result = await session.client.complete(ref, {"name": "name", "value": "B"})
    same(result.completion.values, ["Bob"])


async def schema(session, wanted):
    if wanted < "2025-06-18":
        return False
    tools = {tool.name: tool for tool in (await session.client.list_tools()).tools}
    same(session.of(tools["add"], "outputSchema")["properties"]["sum"], {"type": "integer"})


async def logging(session, wanted):
    """The server logs a message below this level first."""
    if wanted < MODERN:
        await session.client.set_logging_level("warning")
    result = await session.client.call_tool("log", {}, meta={LEVEL: "warning"} if wanted >= MODERN else None)
    same(text(result), "logged")
    await until(lambda: heard.logged)
    same(heard.logged, [("warning", "interop", "high")])


async def updated(session, _):
    async def touch():
        same(text(await session.call("touch", {})), "touched")

    same(await asyncio.wait_for(session.updated("note://one", touch), SOON), "note://one")


async def consult(session, wanted):
    if wanted < "2025-11-25":
        return False
    heard.asked.clear()
    same(text(await session.call("consult", {})), "the model said: use-1 gave 42")
    same(heard.asked, ["model", "model"])


async def page(session, wanted):
    if wanted < "2025-11-25":
        return False
    heard.opens = True
    same(text(await session.call("page", {})), "page: accept")
    same([(page.url, page.message) for page in heard.pages], [("https://example.org/page", "Please log in.")])


async def page_told(session, wanted):
    """The page of the step before is complete."""
    if wanted != "2025-11-25":
        return False
    await until(lambda: heard.completed)
    same(heard.completed, [session.of(heard.pages[0], "elicitationId")])


async def page_refused(session, wanted):
    if wanted < "2025-11-25":
        return False
    heard.opens = False
    same(text(await session.call("page", {})), "page: decline")


async def until(condition):
    """Waits until something is so."""

    async def look():
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(look(), SOON)


AREAS = {
    "resources": resources,
    "read": read,
    "blob": blob,
    "templates": templates,
    "template": template,
    "missing": missing,
    "prompts": prompts,
    "prompt": prompt,
    "completion": completion,
    "variable": variable,
    "schema": schema,
    "logging": logging,
    "updated": updated,
    "consult": consult,
    "page": page,
    "page told": page_told,
    "page refused": page_refused,
}
# What needs a session, in the era that has some.
AREAS_IN_SESSION = ["logging", "updated", "consult", "page", "page told", "page refused"]
