"""What the callbacks of the clients with `mcp` 2.x answer."""

import mcp_types as types
from mcp.client.extension import ClientExtension, NotificationBinding
from pydantic import BaseModel

from heard import heard

SAMPLES = types.SamplingCapability(tools=types.SamplingToolsCapability())


def of(model, name):
    """A member, by its name on the wire."""
    [field] = [field for field, known in type(model).model_fields.items() if name in (field, known.alias)]
    return getattr(model, field)


class Note(BaseModel):
    n: int


async def noted(_):
    heard.noted.set()


class Notes(ClientExtension):
    identifier = "org.example/interop"

    def notifications(self):
        return [NotificationBinding(method="notifications/interop", params_type=Note, handler=noted)]


async def elicit(_, params):
    if params.mode == "url":
        heard.asked.append("page")
        heard.pages.append(params)
        return types.ElicitResult(action="accept" if heard.opens else "decline")
    heard.asked.append("user")
    if heard.accept:
        return types.ElicitResult(action="accept", content={"name": "Ann"})
    return types.ElicitResult(action="decline")


def blocks(message):
    return message.content if isinstance(message.content, list) else [message.content]


async def sample(_, params):
    """The model uses the offered tool, and then says what the tool has said."""
    heard.asked.append("model")
    assert blocks(params.messages[0])[0].text == "What is six times seven?"
    [last] = blocks(params.messages[-1])
    if last.type == "tool_result":
        said = types.TextContent(type="text", text=f"{last.tool_use_id} gave {last.content[0].text}")
    elif params.tools:
        said = types.ToolUseContent(type="tool_use", id="use-1", name=params.tools[0].name, input={"a": 6, "b": 7})
        return types.CreateMessageResultWithTools(role="assistant", model="none", content=[said], stop_reason="toolUse")
    else:
        said = types.TextContent(type="text", text="forty-two")
    return types.CreateMessageResult(role="assistant", model="none", content=said)


async def roots(_):
    heard.asked.append("roots")
    return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere", name="the only one")])


async def message(message):
    if isinstance(message, Exception):
        heard.faults.append(message)
        return
    match message:
        case types.ToolListChangedNotification():
            heard.changed.set()
        case types.ResourceUpdatedNotification(params=params):
            heard.updated.put_nowait(str(params.uri))
        case types.ElicitCompleteNotification(params=params):
            heard.completed.append(params.elicitation_id)
