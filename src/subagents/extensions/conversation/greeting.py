"""Whether a program speaks its protocol: it is started, greeted, and ended again. Blocking."""

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, Protocol, runtime_checkable

from subagents.domain.run.secret_reference import is_reference
from subagents.domain.run.signals import ResultSeen
from subagents.domain.run.values import AttemptId, RunId
from subagents.errors import SubagentsError
from subagents.extensions.conversation.dialect import Awaiting, Dialect, Opening, TurnStep
from subagents.process_group import kill_group
from subagents.runtimes.process.environment import passed_variables
from subagents.text import one_line

ERROR_CHARS_MAX: Final = 300
ERR_BYTES_MAX: Final = 64 * 1024
_RUN: Final = RunId("greeting")


@runtime_checkable
class Greeted(Protocol):
    """A runtime that can find out whether a program speaks its protocol, without any work."""

    def greeting_problem(
        self, options: Mapping[str, object], *, environ: Mapping[str, str], timeout_s: float
    ) -> str | None:
        """Start the program, ask what its protocol begins with, and end it. Blocking.

        Args:
            options: ``check`` took them.
            environ: What a worker's variables are taken from; its PATH is searched.
            timeout_s: How long it may take to answer, in seconds.

        Returns:
            What went wrong; None = it answered, or cannot be asked without asking a model.
        """


def problem(
    dialect: Dialect[Any],
    options: Mapping[str, object],
    *,
    environ: Mapping[str, str],
    timeout_s: float,
) -> str | None:
    """What keeps the program of these options from answering; see ``Greeted``."""
    if not isinstance(dialect, Awaiting) or not dialect.asks_first:
        return None
    with tempfile.TemporaryDirectory(prefix="subagents-greeting-") as root:
        directory = Path(root, _RUN, "1")
        directory.mkdir(parents=True)
        env = dict(options["env"]) if isinstance(options.get("env"), dict) else {}  # type: ignore[call-overload]
        named = options.get("pass_env")
        names = tuple(map(str, named)) if isinstance(named, (list, tuple)) else ()
        env = passed_variables(environ, (*dialect.passes, *names)) | env
        # What is a secret is not asked for to see whether a program speaks.
        env = {name: value for name, value in env.items() if not is_reference(value)}
        path = {"PATH": env.get("PATH", os.defpath)}
        opening = Opening(
            attempt_id=AttemptId(f"{_RUN}#1"),
            run_id=_RUN,
            number=1,
            turn=1,
            message="",
            system_prompt="",
            cwd=str(directory),
            session_uuid=str(uuid.uuid4()),
            options=dict(options),
        )
        try:
            invocation = dialect.invocation(opening, directory=str(directory), path=path["PATH"])
            for name, data in invocation.files.items():
                (directory / name).write_bytes(data)
            with subprocess.Popen(
                invocation.argv,
                cwd=directory,
                env=env | invocation.env | path,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            ) as process:
                try:
                    return _greeted(dialect, opening, process, timeout_s=timeout_s)
                finally:
                    kill_group(process.pid)
                    with contextlib.suppress(BrokenPipeError):  # of what it never read
                        _open(process.stdin).close()
        except (SubagentsError, OSError) as error:
            return str(error)


def _greeted(
    dialect: Dialect[Any], opening: Opening, process: "subprocess.Popen[bytes]", *, timeout_s: float
) -> str | None:
    assert isinstance(dialect, Awaiting)  # noqa: S101 - for the type checker
    first = dialect.begin(opening)
    state = first.state
    owed = dialect.awaits(state)
    _send(process, first)
    output, until_s = _Output(), time.monotonic() + timeout_s
    for line in output.lines(process, until_s=until_s):
        if any(line == each.line for each in first.input_lines):
            return "it only repeats what it is asked"
        step = dialect.read_line(state, line, now_ms=None)
        state = step.state
        failed = [each for each in step.signals if isinstance(each, ResultSeen) and each.is_error]
        if failed:
            return _short(failed[0].error or f"it refused {owed}")
        if dialect.awaits(state) != owed:
            return None
        _send(process, step)
    try:
        status = process.wait(max(until_s - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return f"it owed {owed} for {timeout_s:g} s"
    last = output.err.decode("utf-8", "replace").strip().splitlines()
    why = next((line for line in last if "error" in line.lower()), last[-1] if last else "")
    return _short(f"it ended (exit status {status}) and owed {owed}" + (f": {why}" if why else ""))


def _send(process: "subprocess.Popen[bytes]", step: TurnStep[Any]) -> None:
    stdin = _open(process.stdin)
    with contextlib.suppress(BrokenPipeError):  # what it wrote before it ended says why
        for each in step.input_lines:
            stdin.write(each.line + b"\n")
        stdin.flush()


class _Output:
    """What the program wrote: lines of its output, and the beginning of its error output."""

    def __init__(self) -> None:
        self.err = b""

    def lines(self, process: "subprocess.Popen[bytes]", *, until_s: float) -> Iterator[bytes]:
        """Whole lines until both outputs are closed, or the time is up."""
        held = b""
        with selectors.DefaultSelector() as selector:
            for stream in (process.stdout, process.stderr):
                selector.register(_open(stream), selectors.EVENT_READ)
            while selector.get_map():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return
                for key, _ in selector.select(left_s):
                    data = os.read(key.fd, 65_536)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stderr:
                        self.err = (self.err + data)[:ERR_BYTES_MAX]
                    else:
                        *whole, held = (held + data).split(b"\n")
                        yield from whole


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101 - all three are pipes
    return stream


def _short(text: str) -> str:
    return one_line(text, ERROR_CHARS_MAX)
