"""One caller as a process of its own: it spawns and takes results by one way in, until told to end.

    python -m tests.torture.callers DOOR PLACE SEED

``PLACE`` is the storm's directory, with what all callers need to know in ``callers.json``. It is
killed at any instant and started again, and then goes on from its diary. It ends by itself when
``finish`` lies there and it has every result it was promised, with 1 when one does not come.
"""

import asyncio
import contextlib
import json
import os
import random
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.torture.diary import Diary
from tests.torture.handing import (
    BOUND_S,
    Broken,
    document_in,
    drain,
    is_document,
    peeked,
    request,
    splice,
)

from subagents import Orchestrator
from subagents.client.client import Client
from subagents.errors import SubagentsError, Unavailable
from subagents.unread import unread_bytes

FINISH_S: Final = 120.0
"""For the last results: a courier that failed is tried again after 15 s, then after 30 s."""
OPEN_MAX: Final = 4
ENDINGS: Final = ("ok", "ok", "ok", "ok", "exit", "retry", "long")
RETRIES: Final = {"retry_count": "retryCount", "retry_delay": "retryDelay"}
AGENTS: Final = ("sh",) * 12 + ("acp", "llm")
PAUSE_S: Final = 0.02
DAWDLE_S: Final = 0.5
MESSAGE_BYTES_MIN: Final = 100
"""More than the id of a run, or an empty inbox."""

Document = dict[str, Any]


def agent_of(token: str) -> str:
    """The same again for the same token; what agents say at their end is no exit code."""
    return random.Random(token).choice(AGENTS)


class Caller:
    """What all ways in have in common.

    Args:
        door: Its name, and that of its diary.
        place: The storm's directory.
        seed: Of what it does.
    """

    agent_id = "main"
    takes_by_inbox = True
    """Whether what an earlier life left is in an inbox for it to read."""

    def __init__(self, door: str, place: Path, seed: str) -> None:
        self.place = place
        self.door = door
        told: Document = json.loads((place / "callers.json").read_text())
        self.told = told
        self.session = f"agent:{self.agent_id}:{door}"
        self.chance = random.Random(seed)
        self.diary = Diary(place / "diaries" / door, door)
        self.env = {**os.environ, "SUBAGENTS_SESSION_KEY": self.session}
        self.client = Client(
            told["socket"], session=self.session, reader=f"{door}-{os.getpid()}", timeout_s=10
        )

    # -- its life -----------------------------------------------------------------------------

    def live(self) -> int:
        """Until told to end; the exit code says whether everything came."""
        self.begin()
        while not (self.place / "finish").exists():
            self._try(self.turn)
            self._pause()
        due = time.monotonic() + FINISH_S
        while self.diary.unknown() or self.diary.missing():
            if time.monotonic() > due:
                return 1
            self._try(self.want_again)
            self._try(self.take_left)
            self._pause()
        return 0

    def _pause(self) -> None:
        time.sleep(self.chance.uniform(0, 2 * PAUSE_S))

    def want_again(self) -> None:
        """Whatever was asked for and never known to be accepted, with the same key."""
        for token, ending in self.diary.unknown().items():
            self.want(token, ending)

    def keep(self, data: bytes) -> Path:
        """Keep what is in hand; for a while it is nowhere else, which is the time to be killed."""
        take, _ = self.diary.next_take()
        self.diary.holding.touch()
        time.sleep(self.chance.uniform(0, DAWDLE_S))
        self.diary.keep(take, data)
        self.diary.holding.unlink(missing_ok=True)
        return take

    def _try(self, act: Callable[[], None]) -> None:
        """What a killed daemon breaks is done again in the next turn."""
        with contextlib.suppress(SubagentsError, Broken, OSError, TimeoutError):
            act()

    # -- what a way in does differently ---------------------------------------------------------

    def begin(self) -> None:
        """Once in each life."""

    def turn(self) -> None:
        """Spawn something and take what is there."""
        self.want_again()
        if len(self.diary.missing()) < OPEN_MAX:
            self.want(*self.task())
        self.take_left()

    def spawn(self, token: str, ending: str) -> str:
        """The id of the run; whoever returns was told that it is stored."""
        spec = self.spec(token, ending)
        body = {"spec": spec, "cwd": self.told["work"]}
        return str(self.client.post("/v1/runs", body)["runId"])

    def take_left(self) -> None:
        """Take what is unread, by the way in under test."""
        raise NotImplementedError

    # -- spawning -----------------------------------------------------------------------------

    def task(self) -> tuple[str, str]:
        """A new token, and how its worker shall end."""
        token = f"t-{self.door}-{os.getpid()}-{self.chance.getrandbits(40):x}"
        return token, self.chance.choice(ENDINGS)

    def want(self, token: str, ending: str) -> None:
        if token not in self.diary.wanted():
            self.diary.will_spawn(token, ending)
        self.diary.has_spawned(token, self.spawn(token, ending))

    def spec(self, token: str, ending: str) -> Document:
        agent = agent_of(token) if ending in {"ok", "long"} else "sh"
        line = f"sh {self.told['worker']} {token} {ending}"
        task = line if agent == "sh" else f"script:work `{line}`"
        return {
            "task": task,
            "agentId": agent,
            "label": token,
            "idempotencyKey": token,
            **({"retryCount": 3, "retryDelay": 100} if ending == "retry" else {}),
        }

    # -- the command line -----------------------------------------------------------------------

    def command(self, *arguments: str, stdin: str | None = None) -> tuple[int, Path]:
        """Run ``subagents``; what it prints is kept by the system, in a file or out of a pipe."""
        take, _ = self.diary.next_take()
        is_piped = self.chance.random() < 0.5
        if is_piped:
            ours, theirs = os.pipe()
        else:
            ours, theirs = -1, os.open(take, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        given = None if stdin is None else self.diary.place / "stdin"
        if given is not None:
            given.write_text(stdin or "")
        with open(os.devnull if given is None else given, "rb") as source:  # noqa: PTH123
            process = subprocess.Popen(
                [sys.executable, "-m", "subagents", *arguments],
                stdin=source,
                stdout=theirs,
                stderr=subprocess.DEVNULL,
                env=self.env,
                cwd=self.told["work"],
            )
        os.close(theirs)
        try:
            if is_piped:
                self._dawdle_over(ours)
                splice(ours, take)
            return process.wait(BOUND_S), take
        except subprocess.TimeoutExpired:
            return -1, take
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(BOUND_S)
            if is_piped:
                os.close(ours)

    def _dawdle_over(self, pipe: int) -> None:
        """Leave the messages that a command printed in its pipe for a while."""
        watch = select.poll()
        watch.register(pipe, select.POLLIN)
        watch.poll(BOUND_S * 1000)
        if unread_bytes(pipe) < MESSAGE_BYTES_MIN:
            return
        self.diary.holding.touch()
        time.sleep(self.chance.uniform(0, DAWDLE_S))
        self.diary.holding.unlink(missing_ok=True)

    def command_spawn(self, token: str, ending: str) -> str:
        status, out = self.command("spawn", *self.flags(token, ending))
        run_id = out.read_text().strip()
        if status != 0 or not run_id:
            raise Unavailable("the command did not spawn")
        return run_id

    def flags(self, token: str, ending: str) -> list[str]:
        spec = self.spec(token, ending)
        retry = ["--retry", "3", "--retry-delay", "100ms"] if "retryCount" in spec else []
        return [
            *(spec["task"], "--agent", spec["agentId"], "--label", token),
            *("--idempotency-key", token, *retry),
        ]

    def command_take(self, *arguments: str, good: tuple[int, ...] = (0, 5)) -> None:
        status, take = self.command(*arguments)
        if status in good:
            self.diary.was_acked(take)


class Run(Caller):
    """``subagents run``: the spawn, the wait and the result in one command."""

    def turn(self) -> None:
        self.want_again()
        token, ending = self.task()
        self.diary.will_spawn(token, ending)
        status, take = self.command("run", *self.flags(token, ending), "--json")
        if status in {0, 5}:
            self.diary.was_acked(take)
        if token in self.diary.given():
            self.diary.has_spawned(token, "-")
        self.take_left()

    def want(self, token: str, ending: str) -> None:
        """Of an earlier life: what it had spawned comes to the inbox."""
        self.diary.has_spawned(token, self.command_spawn(token, ending))

    def take_left(self) -> None:
        self.command_take("inbox", "--json")


class Wait(Run):
    """``subagents spawn``, then ``subagents wait`` in the same life; else the inbox."""

    def turn(self) -> None:
        self.want_again()
        token, ending = self.task()
        self.diary.will_spawn(token, ending)
        run_id = self.command_spawn(token, ending)
        self.diary.has_spawned(token, run_id)
        self.command_take("wait", run_id, "--json", "--timeout", "20s")
        self.take_left()


class Inbox(Caller):
    """``subagents spawn`` some, then ``subagents inbox``."""

    def spawn(self, token: str, ending: str) -> str:
        return self.command_spawn(token, ending)

    def take_left(self) -> None:
        self.command_take("inbox", "--json")


class Python(Caller):
    """``Orchestrator``: the iterator over the inbox, its block, and ``wait``."""

    def begin(self) -> None:
        os.environ["SUBAGENTS_SESSION_KEY"] = self.session

    def turn(self) -> None:
        asyncio.run(asyncio.wait_for(self._turn(), BOUND_S))

    def take_left(self) -> None:
        asyncio.run(asyncio.wait_for(self._take_left(), BOUND_S))

    async def _turn(self) -> None:
        self.want_again()
        async with Orchestrator.connect(session=self.session, cwd=self.told["work"]) as sub:
            handles = []
            for _ in range(self.chance.randint(1, 3)):
                token, ending = self.task()
                self.diary.will_spawn(token, ending)
                spec = self.spec(token, ending)
                # The very request that ``want_again`` makes: the key refuses any other.
                given = {name: spec[key] for name, key in RETRIES.items() if key in spec}
                handles.append(
                    await sub.spawn(
                        spec["task"],
                        agent=spec["agentId"],
                        label=token,
                        idempotency_key=token,
                        **given,
                    )
                )
                self.diary.has_spawned(token, handles[-1].id)
            if self.chance.random() < 0.5:
                found = await handles[0].wait(20)
                take = self.keep(str(found.announcement).encode())
                await sub.get(handles[0].id)  # its next call acknowledges the last
                self.diary.was_acked(take)
            await self._read(sub)

    async def _take_left(self) -> None:
        async with Orchestrator.connect(session=self.session, cwd=self.told["work"]) as sub:
            await self._read(sub)

    async def _read(self, sub: Orchestrator) -> None:
        before: Path | None = None
        async for message in sub.inbox():
            if before is not None:
                self.diary.was_acked(before)
            before = self.keep(message.text.encode())
        if before is not None:
            self.diary.was_acked(before)


class Unix(Caller):
    """Plain HTTP on the Unix socket: take the inbox, acknowledge by ids."""

    def take_left(self) -> None:
        found: Document = self.client.post("/v1/inbox", {"limit": 3})
        messages = found["messages"]
        if messages:
            take = self.keep(json.dumps(found).encode())
            self.client.post("/v1/inbox/ack", {"messageIds": [each["id"] for each in messages]})
            self.diary.was_acked(take)


class Raw(Caller):
    """An answer that counts as read with its last byte."""

    path = "/v1/tools/sessions_wait"

    def open(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(BOUND_S)
        line.connect(self.told["socket"])
        return line

    def headers(self) -> dict[str, str]:
        return {"X-Subagents-Ack": "auto", "X-Subagents-Session": self.session}

    def document(self) -> Document:
        return {"timeoutSeconds": 1}

    def take_left(self) -> None:
        with self.open() as line:
            line.sendall(request(self.path, self.document(), self.headers()))
            data = peeked(line, is_document)
            take = self.keep(json.dumps(document_in(data)).encode())
            drain(line, len(data))
            # One connection serves one call after the other: this answer says that the last call is
            # through, its acknowledgement included.
            line.sendall(request("/healthz", None, self.headers()))
            peeked(line, lambda rest: b"200 OK" in rest)
            self.diary.was_acked(take)


class Tcp(Raw):
    """The same over TCP, with the operator's token."""

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.told["port"]), timeout=BOUND_S)

    def headers(self) -> dict[str, str]:
        token = Path(self.told["token"]).read_text().strip()
        return {
            **super().headers(),
            "Host": f"127.0.0.1:{self.told['port']}",
            "Authorization": f"Bearer {token}",
        }


class McpHttp(Raw):
    """``sessions_wait`` of ``/mcp``."""

    path = "/mcp"

    def document(self) -> Document:
        return {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "sessions_wait", "arguments": super().document()},
        }


class Bridge(Caller):
    """``subagents mcp``, the server on standard input and output, for a whole life."""

    def begin(self) -> None:
        ours, theirs = socket.socketpair()
        self._line = ours
        self._number = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "subagents", "mcp", "--session", self.session],
            stdin=subprocess.PIPE,
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env=self.env,
            cwd=self.told["work"],
        )
        theirs.close()
        self._ask(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "torture", "version": "1"},
        )
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def turn(self) -> None:
        if self._process.poll() is not None:
            # Killed: a client starts another one, here at once.
            self._line.close()
            self.begin()
        super().turn()

    def spawn(self, token: str, ending: str) -> str:
        answer, _ = self._ask(
            "tools/call", name="sessions_spawn", arguments=self._arguments(token, ending)
        )
        document = json.loads(answer)
        run_id = document.get("result", {}).get("structuredContent", {}).get("runId")
        if not run_id:
            raise Unavailable(f"not spawned: {answer[:300]!r}")
        return str(run_id)

    def _arguments(self, token: str, ending: str) -> Document:
        return self.spec(token, ending)

    def take_left(self) -> None:
        if self._process.poll() is not None:
            self._line.close()
            self.begin()
        _, take = self._ask(
            "tools/call", name="sessions_wait", arguments={"timeoutSeconds": 1}, is_kept=True
        )
        # It lives on, and says something: that is when the bridge takes it for handed over.
        self._ask("ping")
        if take is not None:
            self._acked_later(take)

    def _acked_later(self, take: Path) -> None:
        # The bridge acknowledges in the background, and nobody tells its client.
        del take

    def _write(self, document: Document) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(
        self, method: str, *, is_kept: bool = False, **parameters: object
    ) -> tuple[bytes, Path | None]:
        """The line that answers; kept before it is read, when it hands something over."""
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        while True:
            data = peeked(self._line, lambda waiting: b"\n" in waiting)
            line = data[: data.index(b"\n") + 1]
            is_answer = json.loads(line).get("id") == self._number
            take = self.keep(line) if is_kept and is_answer else None
            drain(self._line, len(line))
            if is_answer:
                return line, take


class Hook(Caller):
    """``subagents hook stop``, as Claude Code runs it at the end of a turn."""

    def __init__(self, door: str, place: Path, seed: str) -> None:
        super().__init__(door, place, seed)
        from subagents.config.paths import session_name  # noqa: PLC0415  this caller alone

        self.session = f"agent:main:{session_name(self.told['work'])}"
        self.client = Client(self.told["socket"], session=self.session, timeout_s=10)
        self.env.pop("SUBAGENTS_SESSION_KEY")

    def take_left(self) -> None:
        # A session that goes on forgets nothing; each of its turns ends once.
        given = {"session_id": self.door, "cwd": self.told["work"], "stop_hook_active": False}
        status, take = self.command("hook", "stop", stdin=json.dumps(given))
        if status == 0:
            self.diary.was_acked(take)


class Told(Caller):
    """A session that is told by a program (``courier_program``), which keeps a diary for it."""

    agent_id = "told"

    def take_left(self) -> None:
        pass


class Posted(Caller):
    """A session that is told by a webhook, which this process answers."""

    agent_id = "posted"

    def begin(self) -> None:
        keep = self.keep

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                keep(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", self.told["webhookPort"]), Receiver)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def take_left(self) -> None:
        pass


DOORS: Final[dict[str, type[Caller]]] = {
    "cli-run": Run,
    "cli-wait": Wait,
    "cli-inbox": Inbox,
    "python": Python,
    "http-unix": Unix,
    "tools-unix": Raw,
    "tools-tcp": Tcp,
    "mcp-http": McpHttp,
    "mcp-stdio": Bridge,
    "hook": Hook,
    "program": Told,
    "webhook": Posted,
}
"""Every way by which a result leaves the service."""


def main() -> int:
    door, place, seed = sys.argv[1:]
    return DOORS[door](door, Path(place), f"{seed}/{os.getpid()}").live()


if __name__ == "__main__":
    sys.exit(main())
