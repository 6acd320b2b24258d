"""What the servers have in common: a socket that listens on a free port of loopback, and the end of the process with its standard input."""

import os
import socket
import sys
import threading


def listen() -> tuple[socket.socket, str]:
    """Returns the socket, and the URL of its origin."""

    def end() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"
