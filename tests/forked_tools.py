"""
The tools that lit runs, by a process that has imported them and forks for each command.

To import xDSL and irees takes ten times as long as what a file below `filecheck/` has them do.

    with forked_tools() as folder:
        subprocess.run(["lit", ...], env=os.environ | {"IREES_LIT_TOOLS": folder})

There is a command for each of `TOOLS` in `folder` then, which hands its arguments, its folder and
its three streams to the server, and ends as the fork there does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

TOOLS = {
    "filecheck": "filecheck.main:main",
    "irees": "irees.tools.main:main",
    "xdsl-opt": "xdsl.tools.xdsl_opt:main",
}
CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
request = json.dumps([{name!r}, os.getcwd(), sys.argv]).encode()
socket.send_fds(server, [len(request).to_bytes(4, "little") + request], [0, 1, 2])
status = server.recv(1)
sys.exit(status[0] if status else "the server of " + {name!r} + " is gone, or its fork crashed")
"""


@contextmanager
def forked_tools() -> Iterator[str]:
    """The folder of the commands, which are answered as long as it is there."""
    # pytest's own folders can be too deep: the path of a socket has about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="irees-") as folder:
        path = str(Path(folder) / "server")
        for name in TOOLS:
            client = Path(folder) / name
            client.write_text(CLIENT.format(python=sys.executable, path=path, name=name))
            client.chmod(0o700)
        server = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield folder
        finally:
            server.kill()
            server.wait()


def serve(path: str) -> None:
    """Forks for each command until it is killed."""
    mains = {}
    for name, place in TOOLS.items():
        module, _, main = place.partition(":")
        mains[name] = getattr(import_module(module), main)
    import_module("irees.build")
    gc.freeze()  # what is imported is not looked through, and so not copied, in each fork
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the system buries the forks
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            status = _run(mains, connection)
            sys.stdout.flush()
            sys.stderr.flush()
            connection.send(bytes([status]))
            os._exit(0)
        connection.close()


def _run(mains: dict, connection: socket.socket) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, *_ = socket.recv_fds(connection, 1 << 16, 3)
    size = int.from_bytes(data[:4], "little")
    while len(data) < 4 + size:
        data += connection.recv(1 << 16)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The old objects remember what kind of file theirs was.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    name, folder, sys.argv = json.loads(data[4:])
    os.chdir(folder)
    try:
        status = mains[name]()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        return 1
    if status is None or isinstance(status, int):
        return (status or 0) & 255
    print(status, file=sys.stderr)
    return 1


if __name__ == "__main__":
    serve(sys.argv[1])
