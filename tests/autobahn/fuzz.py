"""Runs cases of Autobahn|Testsuite: `wstest` of the suite for Python 3, as far as it runs cases.

    fuzz.py client SUITE REPORT PORT PATTERN...    runs the cases against a server
    fuzz.py server SUITE REPORT PATTERN...         serves them, and prints its port and their number

A pattern is the number of a case, or its first parts: a family (`7`) or a part of one (`9.1`). A
client of the server asks for `/runCase?case=N`, from 1, one after another, and then for
`/updateReports`, which writes the report and ends the program.

The cases and their verdicts are those of the suite (`suite.py`), and the WebSocket is the library
of its authors. What is here replaces `autobahntestsuite/fuzzing.py`.
"""

import asyncio
import json
import sys

import txaio

txaio.use_asyncio()

from autobahn.asyncio.websocket import (
    WebSocketClientFactory,
    WebSocketClientProtocol,
    WebSocketServerFactory,
    WebSocketServerProtocol,
)
from autobahn.websocket import protocol
from suite import load

# Seconds after which a case is given up. The longest of the suite wait for 1000 s by themselves.
LIMIT = 120


def to_bytes(text):
    return text.encode("latin-1") if isinstance(text, str) else text


class Masker:
    """The masker of the library works on single bytes, which is too slow for megabytes."""

    def __init__(self, mask, length=None):
        self.mask = mask
        self.at = 0

    def pointer(self):
        return self.at

    def reset(self):
        self.at = 0

    def process(self, data):
        key = bytes(self.mask[(self.at + i) % 4] for i in range(4))
        keys = (key * (len(data) // 4 + 1))[: len(data)]
        self.at += len(data)
        masked = int.from_bytes(data, "big") ^ int.from_bytes(keys, "big")
        return masked.to_bytes(len(data), "big")


protocol.create_xor_masker = Masker


class Fuzzing:
    """What the cases need of a connection besides that of the library."""

    def begin(self, name, case):
        self.name = name
        self.connectionWasOpen = False
        self.createWirelog = False
        self.txFrameStats = {}
        self.ended = asyncio.get_running_loop().create_future()
        self.case = case(self)

    # --- What a case does ---

    def sendFrame(self, opcode, payload=b"", **rest):
        super().sendFrame(opcode, payload=to_bytes(payload), **rest)

    def sendMessage(self, payload, isBinary=False, **rest):
        if self.state == self.STATE_OPEN:
            super().sendMessage(to_bytes(payload), isBinary, **rest)

    def sendMessageFrameData(self, payload, sync=False):
        super().sendMessageFrameData(to_bytes(payload), sync)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, to_bytes(reasonUtf8), isReply)

    def sendClose(self, code=None, reason=None):
        # The library of today refuses codes that a case means to send.
        self.sendCloseFrame(code, reason)

    def later(self, delay, do):
        def due():
            if self.state != self.STATE_CLOSED:
                do()

        asyncio.get_running_loop().call_later(delay, due)

    def continueLater(self, delay, do, tag=None):
        self.later(delay, do)

    def killAfter(self, delay):
        self.later(delay, self._fail_connection)

    def closeAfter(self, delay):
        self.later(delay, self.sendClose)

    def enableWirelog(self, enable):
        pass

    # --- What happens ---

    def logTxFrame(self, header, payload, repeat, chop, sync):
        self.txFrameStats[header.opcode] = self.txFrameStats.get(header.opcode, 0) + 1

    def logRxFrame(self, header, payload):
        pass

    def onOpen(self):
        self.connectionWasOpen = True
        self.case.onOpen()

    def onMessage(self, payload, isBinary):
        self.case.onMessage(payload.decode("latin-1"), isBinary)

    def onPong(self, payload):
        self.case.onPong(payload.decode("latin-1"))

    def onClose(self, wasClean, code, reason):
        self.case.onClose(wasClean, code, reason)

    def lost(self):
        self.case.onConnectionLost(self.failedByMe)
        if not self.ended.done():
            self.ended.set_result(self.verdict())

    def verdict(self):
        return {
            "case": self.name,
            "behavior": self.case.behavior,
            "behaviorClose": self.case.behaviorClose,
            "result": self.case.result,
            "resultClose": self.case.resultClose,
            "closeCode": self.remoteCloseCode,
            "closedByMe": self.closedByMe,
            "received": short(self.case.received),
            "expected": short(self.case.expected.get("OK", [])),
        }


def short(events):
    """Returns the kind and the beginning of the text of each event."""
    return [(event[0], event[1][:200]) for event in events]


class Client(Fuzzing, WebSocketClientProtocol):
    def connection_made(self, transport):
        self.begin(*self.factory.next)
        self.factory.latest = self
        super().connection_made(transport)

    def connection_lost(self, reason):
        super().connection_lost(reason)
        self.lost()


class Server(Fuzzing, WebSocketServerProtocol):
    case = None

    def onConnect(self, request):
        if request.path == "/updateReports":
            self.factory.done.set_result(None)
        else:
            number = int(request.params["case"][0])
            self.begin(*self.factory.cases[number - 1])

    def onOpen(self):
        if self.case is None:
            self.sendClose(1000)
        else:
            super().onOpen()

    def connection_lost(self, reason):
        super().connection_lost(reason)
        if self.case is not None:
            self.lost()
            self.factory.report(self.ended.result())


def set_options(factory):
    factory.logFrames = True
    # As the suite sets them: a failure begins with a close frame.
    factory.setProtocolOptions(failByDrop=False)


async def as_client(cases, port):
    factory = WebSocketClientFactory(f"ws://127.0.0.1:{port}/")
    factory.protocol = Client
    set_options(factory)
    verdicts = []
    for case in cases:
        factory.next = case
        await asyncio.get_running_loop().create_connection(factory, "127.0.0.1", port)
        connection = factory.latest
        try:
            verdict = await asyncio.wait_for(asyncio.shield(connection.ended), LIMIT)
        except asyncio.TimeoutError:
            verdict = connection.verdict() | {"behavior": "FAILED", "result": f"no end within {LIMIT} s"}
            connection.transport.abort()
        verdicts.append(verdict)
    return verdicts


async def as_server(cases):
    verdicts = []
    factory = WebSocketServerFactory()
    factory.protocol = Server
    factory.cases = cases
    factory.done = asyncio.get_running_loop().create_future()
    factory.report = verdicts.append
    set_options(factory)
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], len(cases), flush=True)
    await factory.done
    return verdicts


def chosen(cases, patterns):
    """Returns the names and classes of the cases that the patterns choose."""
    starts = tuple(f"{pattern}." for pattern in patterns)
    return [(name, case) for name, case in cases.items() if f"{name}.".startswith(starts)]


def main():
    mode, suite, report, *rest = sys.argv[1:]
    cases = load(suite)
    if mode == "client":
        verdicts = asyncio.run(as_client(chosen(cases, rest[1:]), int(rest[0])))
    else:
        verdicts = asyncio.run(as_server(chosen(cases, rest)))
    with open(report, "w", encoding="utf-8") as file:
        json.dump(verdicts, file, indent=1)


main()
