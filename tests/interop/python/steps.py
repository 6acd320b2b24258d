"""The steps that a client takes with our server, one line of output for each. A session hides what differs between the SDKs."""

import asyncio
import json
import sys
import traceback
from contextlib import AsyncExitStack

from areas import AREAS, AREAS_IN_SESSION
import anyio
from heard import SOON, heard, same, text

MANY = 100
LARGE = 1 << 20
# Sorted by name.
TOOLS = ["add", "cancelled", "change", "consult", "count", "echo", "fail", "greet", "log", "note", "page", "poll", "print"]
TOOLS += ["roots", "sample", "touch", "wait"]
# Whether the server is at a URL, and not a program.
web = sys.argv[3].startswith(("http:", "https:"))
# Whether it speaks HTTP+SSE there.
sse = web and sys.argv[3].endswith("/sse")
# Whether it speaks over a WebSocket there.
web_socket = sys.argv[3].startswith(("ws:", "wss:"))
# Whether the client can come back for the rest of a stream.
resumes = not sse and sys.argv[1] != "stateless" and sys.argv[2] == "2025-11-25"


async def counted(session, pause):
    """The progress that a call tells that pauses so many milliseconds after each step."""
    seen = []

    async def told(progress, total, message):
        seen.append(progress)

    same(text(await session.call("count", {"steps": 3, "pause": pause}, told)), "counted to 3")
    return seen


async def revision(session, wanted):
    same(session.revision(), wanted)


async def listing(session, _):
    same([name for name in await session.list() if not name.startswith("changed-")], TOOLS)


async def added(session, wanted, a, b):
    """The result of that tool, which is a text before 2025-06-18."""
    result = await session.call("add", {"a": a, "b": b})
    return session.structured(result) if wanted >= "2025-06-18" else json.loads(text(result))


async def structured(session, wanted):
    if wanted < "2025-06-18":
        return False
    same(await added(session, wanted, 2, 3), {"sum": 5})


async def plain(session, _):
    said = "grüß \u2028\U0001f600\n"
    same(text(await session.call("echo", {"text": said})), said)


async def progress(session, _):
    same(await counted(session, 150), [1, 2, 3])


async def form(session, wanted):
    if wanted < "2025-06-18":
        return False
    heard.asked.clear()
    same(text(await session.call("greet", {})), "hello Ann")
    same(heard.asked, ["user"])


async def declined(session, wanted):
    if wanted < "2025-06-18":
        return False
    heard.accept = False
    same(text(await session.call("greet", {})), "no name: decline")


async def model(session, _):
    heard.asked.clear()
    same(text(await session.call("sample", {})), "the model said: forty-two")
    same(heard.asked, ["model"])


async def roots(session, _):
    heard.asked.clear()
    same(text(await session.call("roots", {})), "roots: file:///somewhere")
    same(heard.asked, ["roots"])


async def failing(session, _):
    result = await session.call("fail", {})
    same((session.failed(result), text(result)), (True, "this tool always fails"))


async def unknown(session, _):
    try:
        result = await session.call("no-such-tool", {})
    except session.Error as why:
        assert "no-such-tool" in str(why), why
        return
    raise AssertionError(f"{result!r}, expected an error")


async def bad_arguments(session, wanted):
    if wanted < "2025-11-25":
        try:
            result = await session.call("add", {"a": "two"})
        except session.Error as why:
            assert "invalid arguments" in str(why), why
            return
        raise AssertionError(f"{result!r}, expected an error")
    result = await session.call("add", {"a": "two"})
    assert session.failed(result) and "invalid arguments" in text(result), result


async def cancel(session, _):
    call = asyncio.create_task(session.call_to_cancel("wait", {}))
    await asyncio.sleep(0.2)
    await session.cancel(call)
    done, _ = await asyncio.wait([call], timeout=SOON)
    assert done and call.cancelled(), call


async def cancelled(session, _):
    same(text(await session.call("cancelled", {})), "1 cancelled")


async def after(session, wanted):
    same(await added(session, wanted, 20, 3), {"sum": 23})


async def many(session, _):
    texts = [f"number {n}" for n in range(MANY)]
    results = await asyncio.gather(*(session.call("echo", {"text": text}) for text in texts))
    same([text(result) for result in results], texts)


async def large(session, _):
    said = "".join(f"{n}ü " for n in range(session.large // 7))
    assert len(said.encode()) > session.large
    assert text(await session.call("echo", {"text": said})) == said, "another text came back"


async def stray_print(session, _):
    same(text(await session.call("print", {})), "printed")


async def note(session, _):
    same(text(await session.call("note", {})), "noted")
    if session.takes_notes:
        await asyncio.wait_for(heard.noted.wait(), SOON)


async def ping(session, wanted):
    if wanted >= "2026-07-28":
        return False
    await session.ping()


async def no_fault(session, _):
    same([str(why) for why in heard.faults], [])


async def burst(session, _):
    """The progress and the result come in one read."""
    same(await counted(session, 0), [1, 2, 3])


async def changed(session, _):
    async def change():
        await session.call("change", {})

    await listed_anew(session, change)


async def listed_anew(session, change):
    """The client hears of a change, and the list is another one then."""
    before = await session.list()
    await asyncio.wait_for(session.changed(change), SOON)
    assert await session.list() != before, before


async def resumed(session, _):
    """The server closes the stream of the call at each step, and at last before the result."""
    seen = []

    async def told(progress, total, message):
        seen.append(progress)

    same(text(await session.call("poll", {"times": 3}, told)), f"closed {3 if resumes else 0} times")
    same(seen, [1, 2, 3])


async def cut(session, _):
    """All connections are cut at the first progress."""
    if not resumes:
        return False
    seen = []

    async def told(progress, total, message):
        seen.append(progress)
        if len(seen) == 1:
            await ask("cut")

    same(text(await session.call("count", {"steps": 3, "pause": 300}, told)), "counted to 3")
    # Of what a server tells meanwhile, the newest is enough.
    assert seen in ([1, 2, 3], [1, 3]), seen


async def changed_again(session, wanted):
    if not resumes:
        return False
    await changed_still(session, wanted)


async def gone(session, _):
    """The server knows nothing of a session from before: 404, whereupon these SDKs leave it to the program to begin another. Over HTTP+SSE
    the session has ended with its stream."""
    try:
        result = await session.call("add", {"a": 2, "b": 3})
    except session.Error as why:
        # 1.x puts it into its own words.
        said = ["Connection closed"] if sse else ["Session not found", "Session terminated"]
        assert any(said in str(why) for said in said), why
        return
    except anyio.ClosedResourceError:
        assert sse
        return
    raise AssertionError(f"{result!r}, expected an error")


async def restarted(session, wanted):
    same(await added(session, wanted, 2, 3), {"sum": 5})


async def changed_still(session, wanted):
    async def change():
        # On older revisions the stream for it may not be open yet, or again.
        for _ in range(1 if wanted >= "2026-07-28" else 40):
            await session.call("change", {})
            await asyncio.sleep(0.1)
            if heard.changed.is_set():
                return

    await listed_anew(session, change)


STEPS = {
    "revision": revision,
    "list": listing,
    **AREAS,
    "structured": structured,
    "text": plain,
    "progress": progress,
    "form": form,
    "declined": declined,
    "model": model,
    "roots": roots,
    "failing": failing,
    "unknown": unknown,
    "bad arguments": bad_arguments,
    "cancel": cancel,
    "cancelled": cancelled,
    "after": after,
    "many": many,
    "large": large,
    "print": stray_print,
    "note": note,
    "ping": ping,
    "no fault": no_fault,
    "burst": burst,
    "changed": changed,
}
WEB = {"resumed": resumed, "cut": cut, "changed again": changed_again}
ANEW = {"restarted": restarted, "changed still": changed_still}
# What needs a session, in the era that has some.
IN_SESSION = ["form", "declined", "model", "roots", "cancel", "cancelled", "changed"]
IN_SESSION += ["resumed", "cut", "changed again", "changed still", *AREAS_IN_SESSION]


async def ask(what):
    """Asks whoever started this program for something, and waits until it is done."""
    print(what, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def steps(session, wanted, steps):
    """Runs these steps. One that does not apply says `False` and has no line."""
    for name, step in steps.items():
        if sys.argv[1] == "stateless" and name in IN_SESSION:
            continue
        try:
            if await asyncio.wait_for(step(session, wanted), 3 * SOON) is not False:
                print("ok", name, flush=True)
        except Exception as why:
            print(f"FAIL {name}:", " ".join(f"{type(why).__name__} {why}".split())[:500], flush=True)


def run(connected):
    """Runs the client: `PROGRAM MODE REVISION COMMAND ARGUMENTS...`, or a URL in the place of the command."""
    mode, wanted, command, *arguments = sys.argv[1:]

    at = "connect"

    async def whole():
        nonlocal at
        async with AsyncExitStack() as sessions:
            session = await sessions.enter_async_context(connected(mode, command, arguments))
            at = "close"
            await steps(session, wanted, STEPS)
            if web:
                await steps(session, wanted, WEB)
                await ask("restart")
                if wanted < "2026-07-28" and mode != "stateless":
                    await steps(session, wanted, {"gone": gone})
                    at = "connect again"
                    session = await sessions.enter_async_context(connected(mode, command, arguments))
                    at = "close"
                await steps(session, wanted, ANEW)

    try:
        asyncio.run(whole())
        print("ok close", flush=True)
    except Exception as why:
        traceback.print_exc()
        print(f"FAIL {at}: {type(why).__name__} {why}", flush=True)
    print("done", flush=True)
