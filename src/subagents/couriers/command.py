"""Through a program of the user's: pushes announcements into a chat, an editor, another agent.

``[agents.<id>.courier] command = ["notify-send", "subagents", "{text}"]`` binds every outside
session of that agent to the program. It is run once per try, without a shell:

- ``{text}`` in an argument is the announcement, ``{textJson}`` the same as a JSON string with its
  quotes, ``{sessionKey}`` the requester's session, ``{runId}`` the run. One argument takes at most
  ``ARGUMENT_BYTES_MAX``, so a longer text is cut there with a pointer; standard input has all of it.
- ``SUBAGENTS_DELIVERY_ID`` in its environment names the announcement, the same in every try: what
  must not happen twice is keyed by it. A crash after the program's end makes one try more.
- Exit 0 means handed over, which consumes the announcement. Any other end is tried again.
- When its time (``announce_timeout_ms``) is over, its process group is killed.

The text is an untrusted worker's: the configuration refuses it inside a shell's ``-c`` script.
Only the user's own configuration is asked, never a project's: see ``wiring``.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from subagents.config.settings import Settings
from subagents.domain.model import Message, Run
from subagents.domain.outcome import Delivered, DeliveryFailed, DeliveryOutcome, DeliveryPath
from subagents.domain.values import SessionKey, agent_of

DELIVERY_VARIABLE: Final = "SUBAGENTS_DELIVERY_ID"
ARGUMENT_BYTES_MAX: Final = 96 * 1024
"""Of the text in one argument; Linux takes 128 KiB, the template's own words among them."""
STDERR_BYTES_MAX: Final = 2_000
"""The end of what it said is kept as the error of a failed try."""
LAST_WORDS_S: Final = 0.5
"""Its end is its exit. A child it left behind may hold its standard error open for ever."""
READ_BYTES: Final = 64 * 1024

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
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={**self._environ, DELIVERY_VARIABLE: message.id},
                start_new_session=True,
            )
        except OSError as error:
            return DeliveryFailed(retryable=True, error=f"{argv[0]}: {error.strerror or error}")
        try:
            said = await _talk(process, message.text)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # Killed, so this is short; cancelling it would leave a zombie.
                await asyncio.shield(process.wait())
        if process.returncode == 0:
            return Delivered(path=DeliveryPath.DIRECT)
        return DeliveryFailed(retryable=True, error=_complaint(argv[0], process.returncode, said))


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


async def _talk(process: asyncio.subprocess.Process, text: str) -> str:
    """Hand the text over and wait for the exit; returns the end of its standard error."""
    tail = bytearray()
    talking = [
        asyncio.ensure_future(_feed(process, text.encode(errors="replace"))),
        asyncio.ensure_future(_listen(process, tail)),
    ]
    try:
        await process.wait()
        await asyncio.wait(talking[1:], timeout=LAST_WORDS_S)
    finally:
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
    return tail.decode(errors="replace").strip()


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is None:
        return
    # A program that reads nothing may be gone already: its exit status says how it went.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


async def _listen(process: asyncio.subprocess.Process, tail: bytearray) -> None:
    """Read on to the end, so that it never blocks; keep the last words only."""
    while process.stderr is not None and (chunk := await process.stderr.read(READ_BYTES)):
        tail += chunk
        del tail[:-STDERR_BYTES_MAX]


def _complaint(program: str, status: int | None, said: str) -> str:
    how = f"signal {-status}" if status is not None and status < 0 else f"exit code {status}"
    return f"{program}: {how}: {said}" if said else f"{program}: {how}"
