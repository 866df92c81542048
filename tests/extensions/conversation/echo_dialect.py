"""A small program with a protocol of its own, and its dialect: a double for real agents.

The program is a real process. It reads lines ``say TEXT``, ``steer KEY TEXT``, ``stop`` and writes
``session ID``, ``text TEXT``, ``took KEY``, ``tool NAME``, ``done TEXT``.
"""

import sys
from collections.abc import Mapping
from typing import Final

from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.spec import Abilities
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.extensions.conversation.dialect import (
    InputLine,
    Invocation,
    Opening,
    TurnStep,
)

PROGRAM: Final = r"""
import os, signal, subprocess, sys, time

def out(text):
    print(text, flush=True)

def work(words):
    for word in words.split(";"):
        name, _, rest = word.strip().partition(" ")
        if name == "text":
            out("text " + rest)
        elif name == "child":
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            out("tool shell")
        elif name == "usage":
            out("usage " + rest)
        elif name == "exit":
            sys.exit(int(rest))
        elif name == "linger":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            linger.append(1)
        elif name == "garbage":
            sys.stdout.buffer.write(b"\xff\x00{[" + b"x" * 100 + b"\n")
        elif name == "listen":
            for line in sys.stdin:
                kind, _, body = line.rstrip("\n").partition(" ")
                if kind == "steer":
                    key, _, said = body.partition(" ")
                    out("took " + key)
                    out("text heard " + said)
                    if said == "enough":
                        break
                elif kind == "stop":
                    out("stopped")
                    return
    out("done " + words)

linger = []
out("session s-" + os.environ.get("ECHO_SESSION", "new"))
for line in sys.stdin:
    kind, _, body = line.rstrip("\n").partition(" ")
    if kind == "say":
        work(body)
while linger:
    time.sleep(0.05)
"""


class EchoState(Value, frozen=True):
    """All that its stream told so far."""

    taken: tuple[str, ...] = ()
    last: str = ""
    is_done: bool = False


class EchoDialect:
    """See ``Dialect``."""

    name = "echo"
    abilities = Abilities(
        survives_daemon=True, steer=True, resume=True, interrupt=True, usage=True, scope_tools=True
    )
    passes = ("ECHO_*",)

    def check(self, options: Mapping[str, object]) -> None:
        """Takes anything."""

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Has no tools, so that every scope holds."""

    def invocation(self, opening: Opening, *, directory: str, path: str) -> Invocation:
        session = opening.session_id.removeprefix("s-") if opening.session_id else "new"
        return Invocation(
            (sys.executable, "-c", PROGRAM),
            env={"ECHO_SESSION": f"{session}+" if opening.session_id else "new"},
        )

    def begin(self, opening: Opening) -> TurnStep[EchoState]:
        line = f"say {opening.message}".encode()
        return TurnStep(EchoState(), input_lines=(InputLine("prompt", line),))

    def read_line(
        self, state: EchoState, line: bytes, *, now_ms: int | None
    ) -> TurnStep[EchoState]:
        kind, _, body = line.decode("utf-8", "replace").partition(" ")
        signals: tuple[Signal, ...] = ()
        match kind:
            case "session":
                signals = (SessionSeen(key="", session_id=body),)
            case "text":
                return TurnStep(
                    replace(state, last=body), output=(OutputItem(type=LineType.TEXT, text=body),)
                )
            case "took":
                return TurnStep(replace(state, taken=(*state.taken, body)))
            case "tool":
                signals = (ToolSeen(key="", name=body),)
            case "usage":
                signals = (UsageSeen(key="", usage=Usage(tokens_in=int(body))),)
            case "done" | "stopped":
                signals = (ResultSeen(key="", text=state.last or body),)
                state = replace(state, is_done=True)
            case _:
                return TurnStep(
                    state,
                    output=(OutputItem(type=LineType.SYSTEM, text=f"unknown event: {kind[:20]}"),),
                )
        return TurnStep(state, signals=signals)

    def steer(self, state: EchoState, message: str, *, key: str) -> InputLine | None:
        return None if state.is_done else InputLine(key, f"steer {key} {message}".encode())

    def accepted(self, state: EchoState, key: str) -> bool | None:
        return True if key in state.taken else None

    def interrupt(self, state: EchoState, *, key: str) -> InputLine | None:
        return None if state.is_done else InputLine(key, b"stop")

    def is_done(self, state: EchoState) -> bool:
        return state.is_done

    def finish(self, state: EchoState) -> TurnStep[EchoState]:
        if state.is_done:
            return TurnStep(state)
        error = ResultSeen(
            key="", text=state.last, is_error=True, error="it ended in the middle of its turn"
        )
        return TurnStep(state, signals=(error,))
