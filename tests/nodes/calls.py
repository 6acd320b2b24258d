"""Clients that call all the time, and check each answer: `client1.py URL COUNT MODE`, until standard input ends. The last line of output is
what became of the calls. `connected` hides what differs between the SDKs."""

import asyncio
import json
import logging
import os
import random
import re
import sys
import time
from contextlib import AsyncExitStack

TIMEOUT = 40
ENDS = 90
TOOLS = ["echo", "slow", "ask"]

logging.disable()
tally = {"begun": 0, "answered": 0, "failed": {}, "slowest": 0, "faults": [], "alive": 0}
stopped = asyncio.Event()


def text(why):
    """The text of an error, with those of its numbers that are statuses."""
    said = re.sub(r"\d+", lambda number: number[0] if re.fullmatch(r"[45]\d\d", number[0]) else "", str(why))
    return f"{type(why).__name__} {' '.join(said.split())}"


def failed(what, why):
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    cause = f"{what}: {text(why)}"[:200]
    tally["failed"][cause] = tally["failed"].get(cause, 0) + 1


async def call(session, tool, word):
    """Calls a tool. Returns whether it is answered."""
    tally["begun"] += 1
    text = f"{word} {tally['begun']}"
    expected = f"{text} {word}" if tool == "ask" else text
    begun = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            result = await session.call_tool(tool, {"text": text, "millis": random.randrange(3000)})
        said = result.content[0].text
    except Exception as why:
        failed(tool, why)
        return False
    finally:
        tally["slowest"] = max(tally["slowest"], time.monotonic() - begun)
    if said == expected:
        tally["answered"] += 1
    else:
        tally["faults"].append(f"{tool} of {expected} gave {said}")
    return said == expected


async def client(connected, url, mode, nth):
    """Is one client. After a failure it connects again."""
    word = f"word-{os.getpid()}-{nth}"

    async def life():
        try:
            async with AsyncExitStack() as stack:
                # The SDK waits for ever for a stream that has ended meanwhile.
                async with asyncio.timeout(TIMEOUT):
                    session = await stack.enter_async_context(connected(url, mode, word))
                while not stopped.is_set():
                    if not await call(session, random.choice(TOOLS), word):
                        return False
                    await asyncio.sleep(random.random() * 2)
                return await call(session, "echo", word)
        except Exception as why:
            failed("connect", why)
            return False

    while not stopped.is_set():
        alive = await life()
        await asyncio.sleep(random.random() * 2)
    # A session can have been lost since its last call.
    if alive or await life():
        tally["alive"] += 1


async def all_of_them(connected, url, count, mode):
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed("elsewhere", context.get("exception") or context["message"]))
    clients = [asyncio.create_task(client(connected, url, mode, nth)) for nth in range(count)]
    await asyncio.to_thread(sys.stdin.read)
    stopped.set()
    await asyncio.wait(clients, timeout=ENDS)
    print(json.dumps(tally), flush=True)
    # A connection of this SDK may never end.
    os._exit(0)


def run(connected):
    url, count, mode = sys.argv[1:]
    asyncio.run(all_of_them(connected, url, int(count), mode))
