"""A real PostgreSQL of the tests' own, on a socket in a temporary directory, and stores on it."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from subagents.extensions.cluster.postgres.postgres_store import PostgresStore

USER = "postgres" if os.geteuid() == 0 else None
"""Who the server runs as: never root."""


def programs() -> Path | None:
    """Where the server's programs are; None = it is not installed."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: each.parent.name)
    return installed[-1] if installed else None


class PostgresServer:
    """One server; made by ``running``."""

    def __init__(self, directory: Path, programs: Path, *, is_durable: bool) -> None:
        self.directory = directory
        self._fsync = "on" if is_durable else "off"
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._schemas = 0

    def command(self, *argv: str) -> list[str]:
        """As the user that the server runs as."""
        if USER is None:
            return [*argv]
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *argv]

    def make(self) -> None:
        initdb = str(self._programs / "initdb")
        options = ("--auth=trust", "--username=tests", "--encoding=UTF8", "--no-sync")
        # Where texts are compared by another rule than their bytes, ours still are.
        locale = ("--locale=C.UTF-8",)
        argv = self.command(initdb, f"--pgdata={self.data}", *options, *locale)
        subprocess.run(argv, check=True, capture_output=True, cwd=self.directory)

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Return once it answers."""
        argv = (
            *(str(self._programs / "postgres"), f"-D{self.data}", f"-k{self.directory}"),
            *("-clisten_addresses=", f"-cfsync={self._fsync}", "-cmax_connections=60"),
        )
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(*argv), stdout=log, stderr=log, cwd=self.directory
            )
        self.wait()

    def wait(self) -> None:
        assert self._process is not None
        while self._process.poll() is None:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.conninfo(), connect_timeout=2).close()
                return
            time.sleep(0.02)
        raise RuntimeError((self.directory / "log").read_text("utf-8"))

    def kill(self) -> None:
        """Immediate: as by a power cut of its machine, but for the disk."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=60)
            self._process = None

    def url(self, schema: str = "subagents", *, host: Path | None = None) -> str:
        return f"postgresql://tests@/postgres?host={host or self.directory}&schema={schema}"

    def conninfo(self) -> str:
        return f"host={self.directory} user=tests dbname=postgres"

    def execute_script(self, script: str) -> None:
        """Several statements in one transaction."""
        with psycopg.connect(self.conninfo()) as connection:
            psycopg.ClientCursor(connection).execute(script.encode())

    def asked(self, statement: str) -> list[tuple[object, ...]]:
        """The rows of one statement, by itself."""
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def set(self, name: str, value: str) -> None:
        """Change a setting while it runs."""
        self.asked(f"ALTER SYSTEM SET {name} = '{value}'")
        self.asked("SELECT pg_reload_conf()")

    def new_schema(self) -> str:
        """The name of one that nobody had; of this process, too."""
        self._schemas += 1
        return f"s{os.getpid()}_{self._schemas}"


@contextlib.contextmanager
def running(*, is_durable: bool = True) -> Iterator[PostgresServer]:
    """A server until the block ends; skips the test where there is none to be had."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    directory = Path(tempfile.mkdtemp(prefix="subagents-pg-"))
    try:
        if USER is not None:
            shutil.chown(directory, USER, USER)
        server = PostgresServer(directory, found, is_durable=is_durable)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def standby_of(server: PostgresServer, *, is_synchronous: bool) -> Iterator[PostgresServer]:
    """A server that follows this one, until the block ends.

    Args:
        server: It goes on.
        is_synchronous: Whether that one answers a commit only when this one has it, too.
    """
    directory = Path(tempfile.mkdtemp(prefix="subagents-standby-"))
    try:
        if USER is not None:
            shutil.chown(directory, USER, USER)
        standby = PostgresServer(directory, server._programs, is_durable=True)
        from_it = (f"--host={server.directory}", "--username=tests", "--checkpoint=fast")
        program = str(server._programs / "pg_basebackup")
        argv = server.command(
            program, f"--pgdata={standby.data}", "--write-recovery-conf", *from_it
        )
        subprocess.run(argv, check=True, capture_output=True, cwd=directory)
        standby.start()
        try:
            if is_synchronous:
                server.set("synchronous_standby_names", "*")
            wanted = "sync" if is_synchronous else "async"
            while server.asked("SELECT sync_state FROM pg_stat_replication") != [(wanted,)]:
                time.sleep(0.05)
            yield standby
        finally:
            standby.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Pooler:
    """PgBouncer before a server, a transaction at a time; made by ``pooled``."""

    def __init__(self, program: str, server: PostgresServer, directory: Path) -> None:
        self.directory = directory
        """Where its socket is."""
        settings = directory / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\npostgres = host={server.directory} user=tests\n"
            "[pgbouncer]\npool_mode = transaction\ndefault_pool_size = 3\nauth_type = any\n"
            f"listen_addr =\nlisten_port = 5432\nunix_socket_dir = {directory}\n"
        )
        self._argv = server.command(program, str(settings))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it accepts connections."""
        log, near = self.directory / "log", self.directory / ".s.PGSQL.5432"
        near.unlink(missing_ok=True)
        with log.open("ab") as out:
            self._process = subprocess.Popen(self._argv, stdout=out, stderr=out, cwd=self.directory)
        while not near.exists():
            assert self._process.poll() is None, log.read_text("utf-8")
            time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL, and the end of it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def pooled(server: PostgresServer) -> Iterator[Pooler]:
    """PgBouncer until the block ends; skips the test where there is none to be had."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed: apt install pgbouncer")
    directory = Path(tempfile.mkdtemp(prefix="subagents-pool-"))
    try:
        if USER is not None:
            shutil.chown(directory, USER, USER)
        pooler = Pooler(program, server, directory)
        pooler.start()
        try:
            yield pooler
        finally:
            pooler.kill()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class PostgresPlace:
    """A schema of its own, as the place where the store suite works.

    Args:
        server: Where the schema is.
        directory: For the lock.
        host: Where the socket is that leads to the server; None = its own.
    """

    def __init__(
        self, server: PostgresServer, directory: Path, *, host: Path | None = None
    ) -> None:
        self.server = server
        self.schema = server.new_schema()
        self.lock = directory / "postgres.lock"
        self.url = server.url(self.schema, host=host)

    def store(self) -> PostgresStore:
        return PostgresStore(self.url, self.lock)

    def lose_lock(self) -> None:
        text = self.lock.read_text("utf-8")
        self.lock.unlink()
        self.lock.write_text(text, "utf-8")

    def execute(self, sql: str, *parameters: object) -> int:
        """Behind the store's back; how many rows it was about."""
        with psycopg.connect(self.server.conninfo(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {self.schema}".encode())
            return connection.execute(self._sql(sql), parameters or None).rowcount

    def asked(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self.server.conninfo(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {self.schema}".encode())
            return connection.execute(self._sql(sql), parameters or None).fetchall()

    def _sql(self, sql: str) -> bytes:
        """What a test says to both databases."""
        return sql.replace("?", "%s").replace("x'", "'\\x").encode()
