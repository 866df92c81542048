"""``version``: the versions of this command, of the daemon that answers it, and of the database."""

import platform
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from subagents.cli import output
from subagents.cli.connection import paths, session, warn_of_version
from subagents.cli.flags import Json
from subagents.client.client import Client
from subagents.config.paths import Paths
from subagents.errors import SubagentsError
from subagents.version import __version__

DAEMON_S: Final = 5.0


class ThisClient(msgspec.Struct, frozen=True):
    """This command."""

    version: str
    python: str
    platform: str


class Daemon(msgspec.Struct, frozen=True):
    """The daemon that answers; what one of 0.1.0 does not say is null."""

    version: str
    pid: int | None = None
    schema: int | None = None


class Schema(msgspec.Struct, frozen=True):
    """The schema of the database."""

    newest: int
    """The newest one that this version knows."""
    database: int | None
    """The one that the database has; null = there is none, or it cannot be read."""


class Versions(msgspec.Struct, frozen=True):
    """What ``version --json`` prints."""

    client: ThisClient
    daemon: Daemon | None
    """Null = none is running."""
    schema: Schema | None
    """Null = the database is no file of this machine; the daemon says its own."""


def version(*, json: Json = False) -> None:
    """Show the versions of this command, Python, the daemon and the database.

    Starts nothing: the daemon is `null` in JSON if none is running.

    For example:

        subagents version

        subagents version --json
    """
    found = versions(paths())
    if json:
        output.document(found)
        return
    for line in _lines(found):
        output.line(line)


def _lines(found: Versions) -> Iterator[str]:
    yield f"subagents  {found.client.version}"
    yield f"python     {found.client.python} on {found.client.platform}"
    daemon = found.daemon
    told = "not running" if daemon is None else f"{daemon.version}, pid {daemon.pid}"
    yield f"daemon     {told}"
    if found.schema is None:
        return
    database = found.schema.database
    held = "no database yet" if database is None else f"the database has {database}"
    yield f"schema     {found.schema.newest} ({held})"


def versions(home: Paths) -> Versions:
    """The versions of everything here; starts nothing."""
    from subagents.stores import store_file_of  # noqa: PLC0415

    file = store_file_of(home)
    return Versions(
        client=ThisClient(
            version=__version__,
            python=".".join(map(str, sys.version_info[:3])),
            platform=f"{platform.system()} {platform.machine()}",
        ),
        daemon=_daemon(home),
        schema=None if file is None else Schema(newest=file.schema, database=file.found_schema()),
    )


def _daemon(home: Paths) -> Daemon | None:
    try:
        with Client(home.socket, session=session(), timeout_s=DAEMON_S) as client:
            found = msgspec.convert(client.get("/version"), Daemon)
            warn_of_version(client)
            return found
    except (SubagentsError, msgspec.ValidationError):
        return None
