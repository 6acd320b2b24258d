"""What the callbacks of a client have heard, and what its user answers."""

import asyncio
from dataclasses import dataclass, field

SOON = 10


@dataclass
class Heard:
    asked: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    noted: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    logged: list = field(default_factory=list)
    updated: asyncio.Queue = field(default_factory=asyncio.Queue)
    pages: list = field(default_factory=list)
    completed: list = field(default_factory=list)
    # Whether the user fills in forms, and opens pages.
    accept: bool = True
    opens: bool = True


heard = Heard()


def text(result):
    return "\n".join(block.text for block in result.content)


def same(got, wanted):
    assert got == wanted, f"{got!r}, expected {wanted!r}"


async def logged(params):
    heard.logged.append((params.level, params.logger, params.data))
