"""Through a program of the user's: pushes announcements into a chat, an editor, another agent.

``[agents.<id>.courier] command = ["notify-send", "subagents", "{text}"]`` binds every outside
session of that agent to the program. It is run once per try, without a shell:

- ``{text}`` in an argument is the announcement, ``{textJson}`` the same as a JSON string with its
  quotes, ``{sessionKey}`` the requester's session, ``{runId}`` the run. An argument cannot be of
  any length, so a text over ``ARGUMENT_BYTES_MAX`` is cut there; standard input has all of it.
- ``SUBAGENTS_DELIVERY_ID`` in its environment names the announcement, the same in every try: what
  must not happen twice is keyed by it. A crash after the program's end makes one try more.
- Exit 0 means handed over, which consumes the announcement. Any other end is tried again.
- When its time (``announce_timeout_ms``) is over, its process group is killed.

The text is an untrusted worker's: the configuration refuses it inside a shell's ``-c`` script.
Only the user's own configuration is asked, never a project's: see ``wiring``.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from subagents.config.settings import Settings
from subagents.domain.redaction.redact import MARGIN_BYTES, ending
from subagents.domain.run.outcome import (
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import Message, Run
from subagents.domain.run.values import SessionKey, agent_of
from subagents.process_group import kill_group

DELIVERY_VARIABLE: Final = "SUBAGENTS_DELIVERY_ID"
ARGUMENT_BYTES_MAX: Final = 96 * 1024
"""The longest text in one argument; Linux takes 128 KiB, the template's own words among them."""
STDERR_BYTES_MAX: Final = 2_000
"""The end of its output is kept as the error of a failed try."""
LAST_WORDS_S: Final = 0.5
"""Its end is its exit. A child it left behind may hold its standard error open for ever."""
STDERR: Final = 2

_PLACEHOLDER: Final = re.compile(r"\{(text|textJson|sessionKey|runId)\}")


class CommandCourier:
    """See ``ports.Courier``.

    Args:
        settings: The user's configuration as it is now.
        environ: What the program gets besides the delivery id.
    """

    name = "command"

    def __init__(self, settings: Callable[[], Settings], environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        """Outside sessions of an agent that has a courier command."""
        return requester is None and self._template(target) is not None

    def _template(self, target: SessionKey) -> tuple[str, ...] | None:
        agent = self._settings().agents.get(agent_of(target))
        return None if agent is None else agent.courier.command

    async def deliver(
        self,
        run: Run,
        message: Message,
        requester: Run | None,  # noqa: ARG002 - it has none
    ) -> DeliveryOutcome:
        """Run the program once; it is gone, with its process group, when this returns or raises."""
        template = self._template(message.session_key)
        if template is None:
            return DeliveryFailed(retryable=True, error="its command was taken out of the settings")
        argv = arguments(template, run, message)
        env = {**self._environ, DELIVERY_VARIABLE: message.id}
        start = asyncio.get_running_loop().subprocess_exec(
            _Program, *argv, stdout=asyncio.subprocess.DEVNULL, env=env, start_new_session=True
        )
        starting = asyncio.ensure_future(start)
        try:
            # No cancel reaches the start: given up half way it leaves children, or never ends.
            await asyncio.wait({starting})
            transport, program = starting.result()
            program.tell(message.text.encode(errors="replace"))
            await program.exited.wait()
            await _at_most(LAST_WORDS_S, program.silent)
        except OSError as error:
            return DeliveryFailed(retryable=True, error=f"{argv[0]}: {error.strerror or error}")
        finally:
            await asyncio.shield(_over(starting))
        status = transport.get_returncode()
        if status == 0:
            return Delivered(path=DeliveryPath.DIRECT)
        return DeliveryFailed(retryable=True, error=_complaint(argv[0], status, program.stderr_end))


def arguments(template: tuple[str, ...], run: Run, message: Message) -> list[str]:
    """The program and its arguments; what was put in is not looked at for placeholders again."""
    text = message.text.replace("\0", "\ufffd")
    pointer = f"… (cut: subagents result {run.id})"
    values = {
        "text": _cut(text, ARGUMENT_BYTES_MAX, pointer),
        "sessionKey": message.session_key,
        "runId": run.id,
    }
    if any("{textJson}" in word for word in template):
        values["textJson"] = _json(text, pointer)
    return [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in template]


def _json(text: str, pointer: str) -> str:
    bytes_max = ARGUMENT_BYTES_MAX
    while True:
        spelled = msgspec.json.encode(_cut(text, bytes_max, pointer))
        if len(spelled) <= ARGUMENT_BYTES_MAX + len(pointer.encode()) + 2:
            return spelled.decode()
        bytes_max //= 2  # escapes can make it six times as long


def _cut(text: str, bytes_max: int, pointer: str) -> str:
    if len(text) * 4 <= bytes_max:
        return text
    data = text.encode(errors="replace")
    if len(data) <= bytes_max:
        return text
    return data[:bytes_max].decode(errors="ignore") + pointer


class _Program(asyncio.SubprocessProtocol):
    """One run of the command. Its exit is known at once, whoever still holds its pipes."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self._tail = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def stderr_end(self) -> str:
        """The end of its standard error."""
        return ending(bytes(self._tail), STDERR_BYTES_MAX).strip()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def tell(self, data: bytes) -> None:
        """Write its standard input; a program that reads nothing just ends."""
        pipe = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(data)
            pipe.write_eof()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - there is only one
        # Read on to the end, so that the program never blocks; only the last words are kept.
        self._tail += data
        del self._tail[: -STDERR_BYTES_MAX - MARGIN_BYTES]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == STDERR:
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


async def _over(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, _Program]]) -> None:
    """Its end and its group's, as soon as it has begun."""
    with contextlib.suppress(OSError):
        transport, program = await starting
        if not program.exited.is_set():
            kill_group(transport.get_pid())
            # Killed, so this is short; not waiting for it would leave a zombie.
            await program.exited.wait()
        transport.close()


async def _at_most(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _complaint(program: str, status: int | None, stderr_end: str) -> str:
    how = f"signal {-status}" if status is not None and status < 0 else f"exit code {status}"
    return f"{program}: {how}: {stderr_end}" if stderr_end else f"{program}: {how}"
