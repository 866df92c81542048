"""``subagents mcp`` from its first instruction: answers first, and imports the bridge meanwhile.

What a client asks while it connects is answered by ``handshake``; any other line is kept for the
bridge, which takes over as soon as it is imported. Inside a worker the bridge does everything: what
a worker may do differs from run to run, and its daemon is there.
"""

import os
import select

from subagents.extensions.mcp.bridge.handshake import Handshake, own_handshake, parsed
from subagents.extensions.mcp.bridge.worker_above import SOCKET, worker_variables

READ_BYTES = 64 * 1024
NEXT_LINE_S = 0.2
"""How soon a client asks the next thing while it connects."""


class Lines:
    """The client's lines, read without a buffer that others would have to know."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = bytearray()
        self.kept: list[bytes] = []
        """Lines that were given back, for whoever reads on."""
        self._has_ended = False

    def readline(self, most: int) -> bytes:
        """The next line with its end, at most so many bytes of it; empty = the input ended."""
        if self.kept:
            return self.kept.pop(0)
        while (end := self._pending.find(b"\n", 0, most)) < 0:
            if len(self._pending) >= most or not self.read():
                end = min(len(self._pending), most) - 1
                break
        line = bytes(self._pending[: end + 1])
        del self._pending[: end + 1]
        return line

    def read(self) -> bool:
        """Read what is there, or wait for it; False = the input ended."""
        found = b"" if self._has_ended else os.read(self._descriptor, READ_BYTES)
        self._has_ended = not found
        self._pending += found
        return bool(found)

    def whole(self) -> "list[bytes]":
        """The lines that are complete."""
        end = self._pending.rfind(b"\n") + 1
        lines = bytes(self._pending[:end]).splitlines(keepends=True)
        del self._pending[:end]
        return lines

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing more to read, nor anything left."""
        return self._has_ended and not self._pending and not self.kept


class Front:
    """Answers what it can until the bridge is there."""

    def __init__(self, handshake: Handshake | None, *, stdin: int, stdout: int) -> None:
        self.handshake = handshake
        self.lines = Lines(stdin)
        self._stdin, self._stdout = stdin, stdout

    def answer_first(self) -> None:
        """Answer until the tools were listed, a line is not ours to answer, or none comes.

        Importing meanwhile would make these answers late, and nothing can be called before them.
        """
        while (
            self.handshake is not None
            and not (self.handshake.has_listed or self.lines.kept)
            and select.select([self._stdin], [], [], NEXT_LINE_S)[0]
            and self._answer()
        ):
            pass

    def answer_until(self, ready: int) -> None:
        """Answer what comes until ``ready`` can be read, or the input ended."""
        while self.handshake is not None and not self.lines.has_ended:
            found = select.select([self._stdin, ready], [], [])[0]
            if ready in found or not self._answer():
                return

    def _answer(self) -> bool:
        goes_on = self.lines.read()
        for line in self.lines.whole():
            message = parsed(line)
            if self.handshake is None or not isinstance(message, dict):
                self.lines.kept.append(line)
            elif message.get("method") == "notifications/initialized":
                continue  # needs no answer, and changes nothing
            elif (answer := self.handshake.answer(message)) is None:
                self.lines.kept.append(line)
            else:
                left = memoryview(answer + b"\n")
                while left:
                    left = left[os.write(self._stdout, left) :]
        return goes_on


def serve(arguments: "list[str]") -> int:
    """Serve MCP on stdin and stdout until the input ends; returns the exit code."""
    if arguments[:1] and arguments[0].startswith("--server="):
        from subagents.extensions.mcp.bridge.named_server import serve_named  # noqa: PLC0415

        return serve_named(arguments[0].partition("=")[2], os.environ)
    is_worker = bool(os.environ.get(SOCKET)) or bool(worker_variables(os.environ))
    own = None if is_worker else own_handshake(arguments, os.environ)
    front = Front(own, stdin=0, stdout=1)
    try:
        front.answer_first()
        _import_bridge(front)
    except BrokenPipeError:
        return 0
    if front.lines.has_ended:
        return 0
    from subagents.cli.ending import reporting  # noqa: PLC0415
    from subagents.extensions.mcp.bridge.mcp_command import mcp  # noqa: PLC0415

    return reporting(lambda: mcp(arguments, front.lines, own), as_json=False)


def _import_bridge(front: Front) -> None:
    """Import it in a thread, and answer meanwhile."""
    import threading  # noqa: PLC0415  here: it takes the first thread that imports it for the main one

    # A pipe, so that one ``select`` waits for both: the client's next line and the import's end.
    ready, done = os.pipe()

    def load() -> None:
        try:
            import subagents.extensions.mcp.bridge.mcp_command  # noqa: F401, PLC0415
        finally:
            os.close(done)

    threading.Thread(target=load, daemon=True).start()
    try:
        front.answer_until(ready)
    finally:
        os.close(ready)
