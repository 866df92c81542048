"""A daemon of its own for one test: real engine, store, runtimes and socket, in a temporary home.

``python home_daemon.py HOME`` runs one as a process until it is signalled.
"""

import asyncio
import contextlib
import http.client
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from subagents import extension
from subagents.api.calls.refusals import FILE_NAME, Refusals
from subagents.api.calls.services import DaemonInfo, Services, wall_ms
from subagents.api.server.daemon import run_daemon
from subagents.config.layers import Config, load
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.engine.engine import Adapters, Engine
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.verification.verifier import Verifier
from subagents.followers.follower_host import FollowerHost
from subagents.node import file_logs
from subagents.ports import Launch, StartedInfo
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.scripted import ScriptedRuntime
from subagents.store.sqlite.sqlite_store import SqliteStore

CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 100
max_concurrent = 4
max_spawn_depth = 3

[agents.main]
subagents.allow_agents = ["quick"]

[agents.quick]
runtime = "scripted"
script = [{ result = "done" }]
description = "Answers at once"
capabilities = { tags = ["fast"], cost_tier = "free" }

[agents.hang]
runtime = "scripted"
script = [{ hang = true }]
subagents.allow_agents = ["quick"]

[agents.bad]
runtime = "scripted"
script = [{ result = "half" }, { exit = 1 }]

[agents.shell]
runtime = "command"
command = ["sh", "-c", "{task}"]
env = { PLANTED = "planted-secret" }
"""
DEADLINE_S = 40.0
"""For what takes a second here: a machine may be slow, and busy with other tests."""

Document = dict[str, Any]


def build(home: Path, config: str = CONFIG) -> Services:
    """Everything a daemon of ``home`` needs; nothing runs yet."""
    paths = Paths.resolve({"SUBAGENTS_HOME": str(home)})
    paths.ensure()
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(config)

    def load_config(
        cwd: str | None, environ: Mapping[str, str], overrides: Mapping[str, object]
    ) -> Config:
        # A project file above the temporary directory is none of the test's business.
        return load(None, dict(environ), paths=paths, overrides=overrides)

    threads, clock = DaemonThreads("test"), SystemClock()
    command = CommandRuntime(paths.attempts_dir, clock, threads)
    store = SqliteStore(paths.database, synchronous="OFF")  # no machine loses its power here

    settings = load_config(None, {}, {}).settings
    engine = Engine(
        Adapters(
            store=store,
            runtimes={"scripted": TellingRuntime(clock), "command": command},
            couriers={},
            clock=clock,
            ids=RandomIds(clock),
            off_loop=threads,
            verifier=Verifier(threads, clock, commands_allowed=False),
            settings=settings,
            logs=file_logs(paths),
            state_dir=paths.state_dir,
            owner=f"test-{os.getpid()}",
        )
    )
    host = FollowerHost(
        store=store,
        paths=paths,
        settings=settings,
        settings_now=lambda: settings,
        environ={},
    )
    return Services(
        engine=engine,
        load_config=load_config,
        paths=paths,
        info=DaemonInfo(version="0.0.test", pid=os.getpid(), started_at_ms=wall_ms()),
        database=store,
        off_loop=threads,
        reading=threads,
        refusals=Refusals(paths.state_dir / FILE_NAME, threads, engine),
        origin_of=command.origin_of,
        followers=dict(extension.made("followers", host)),
    )


class TellingRuntime(ScriptedRuntime):
    """A scripted runtime that shows the tokens its workers would carry."""

    def __init__(self, clock: SystemClock) -> None:
        super().__init__(clock)
        self.tokens: dict[str, str] = {}

    async def start(self, launch: Launch) -> StartedInfo:
        self.tokens[launch.attempt_id] = launch.env["SUBAGENTS_TOKEN"]
        return await super().start(launch)


class UnixConnection(http.client.HTTPConnection):
    """The standard library's client over a Unix socket."""

    def __init__(self, path: Path, timeout: float = DEADLINE_S) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Home:
    """Calls the daemon of one test."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.cwd = str(services.paths.state_dir)

    def worker(self, run_id: str, attempt: int = 1) -> dict[str, str]:
        """The headers of a worker of the runtime "scripted"; it must have been started."""
        runtime = self.services.engine.adapters.runtimes["scripted"]
        assert isinstance(runtime, TellingRuntime)
        return {"Authorization": f"Bearer {runtime.tokens[f'{run_id}#{attempt}']}"}

    def call_blocking(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Document]:
        connection = UnixConnection(self.services.paths.socket)
        try:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            given = b"" if body is None else content
            connection.request(method, path, given, dict(headers or {}))
            answered = connection.getresponse()
            content_type = answered.getheader("content-type") or ""
            is_error = answered.status >= 400
            assert content_type == ("application/problem+json" if is_error else "application/json")
            document: Document = json.loads(answered.read())
            if not is_error:
                # Here, because this file is also run by itself, as a daemon.
                from tests.api.answer_schemas import check_answer  # noqa: PLC0415

                check_answer(method, path, document)
            return answered.status, document
        finally:
            connection.close()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Document]:
        return await asyncio.to_thread(self.call_blocking, method, path, body, headers)

    async def ok(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Document:
        """The document of a call that must succeed."""
        status, document = await self.call(method, path, body, headers)
        assert status < 400, document
        return document

    async def spawn(
        self, agent: str = "quick", *, headers: Mapping[str, str] | None = None, **spec: object
    ) -> Document:
        body = {"spec": {"task": "work", "agentId": agent, **spec}, "cwd": self.cwd}
        return await self.ok("POST", "/v1/runs", body, headers)

    async def wait(self, *run_ids: str, until: str = "all") -> Document:
        body = {"runIds": list(run_ids), "until": until, "timeoutSeconds": 15}
        return await self.ok("POST", "/v1/wait", body)

    async def hang_up_while_waiting(self, run_id: str, path: str, *headers: str) -> None:
        """Wait for that run as the reader "gone", and leave once the engine knows of the wait."""
        body = json.dumps({"runIds": [run_id], "timeoutSeconds": 600}).encode()
        lines = [
            *(f"POST {path} HTTP/1.1", "host: x", "x-subagents-reader: gone"),
            *(*headers, f"content-length: {len(body)}"),
        ]
        waiters = self.services.engine.mailbox._wakeups
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
            gone.connect(str(self.services.paths.socket))
            gone.sendall("\r\n".join([*lines, "", ""]).encode() + body)
            await until(lambda: run_id in waiters)
        await until(lambda: run_id not in waiters)

    async def until_phase(self, run_id: str, *phases: str) -> Document:
        """The run's row once it is in one of the phases; fails after the deadline."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                row = await self.ok("GET", f"/v1/runs/{run_id}/status")
                if row["phase"] in phases:
                    return row
                await asyncio.sleep(0.02)


async def until(is_so: Callable[[], bool]) -> None:
    """Return once it is so; fails after the deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 - what is looked at has no event to wait for
            await asyncio.sleep(0.01)


def segment(text: str) -> str:
    return quote(text, safe="")


@contextlib.asynccontextmanager
async def serving(
    home: Path, config: str = CONFIG, settings: DaemonSettings | None = None
) -> AsyncIterator[Home]:
    """A daemon in this process, on this loop, for the length of the block."""
    services = build(home, config)
    running = asyncio.create_task(
        run_daemon(
            services,
            paths=services.paths,
            log_path=services.paths.log_file,
            settings=settings or DaemonSettings(),
        )
    )
    try:
        await listening(services.paths.socket, running)
        yield Home(services)
    finally:
        services.stopping.set()
        async with asyncio.timeout(DEADLINE_S):
            await running
        assert isinstance(services.off_loop, DaemonThreads)
        services.off_loop.close()


Scenario = Callable[[Home], Awaitable[None]]


def play(home: Path, scenario: Scenario, config: str = CONFIG) -> None:
    """Play the scenario on a daemon of its own, to the end."""

    async def whole() -> None:
        async with serving(home, config) as daemon:
            await scenario(daemon)

    asyncio.run(whole())


async def listening(path: Path, running: "asyncio.Task[bool] | None" = None) -> None:
    """Return once somebody accepts connections there."""
    async with asyncio.timeout(DEADLINE_S):
        while running is None or not running.done():
            try:
                _, writer = await asyncio.open_unix_connection(path)
            except (FileNotFoundError, ConnectionRefusedError):
                await asyncio.sleep(0.01)
            else:
                writer.close()
                await writer.wait_closed()
                return
    assert running is not None
    running.result()


if __name__ == "__main__":
    used = build(Path(sys.argv[1]))
    asyncio.run(run_daemon(used, paths=used.paths, log_path=used.paths.log_file))
