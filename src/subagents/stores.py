"""Which store a home has; no other module names one.

Apart from ``wiring`` because commands that need a store and no engine start in a third of the time.
"""

import contextlib
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from subagents import extension
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError
from subagents.ports import Database, Store, StoreFile
from subagents.store.sqlite.sqlite_store import HELD_BYTES, SqliteStore


def store_of(paths: Paths, settings: DaemonSettings) -> Store:
    """The configured store; nothing is opened yet.

    Args:
        paths: The home.
        settings: Of its daemon.

    Raises:
        ConfigError: What it needs is not installed, or it is no address.
    """
    if settings.store is None:
        return SqliteStore(paths.database, held_bytes=HELD_BYTES, belongings=paths.belongings)
    for _, made in extension.made("storage", paths, settings):
        if made is not None:
            found: Store = made
            return found
    raise ConfigError(
        "daemon.store is set, and no extension here knows such an address",
        hint="remove daemon.store: the database is then a file in the state directory",
        details={"keys": ["daemon.store"]},
    )


def database_of(paths: Paths) -> Database:
    """What watches over the store of this user's home; nothing is opened yet.

    Raises:
        ConfigError: As ``store_of``.
    """
    settings = _settings(paths)
    if settings is None or settings.store is None:
        return store_file_at(paths.database, paths.belongings)
    return store_of(paths, settings)


def store_file_of(paths: Paths) -> StoreFile | None:
    """The store of this user's home, where it is a file of this machine; None = it is elsewhere."""
    settings = _settings(paths)
    is_elsewhere = settings is not None and settings.store is not None
    return None if is_elsewhere else store_file_at(paths.database, paths.belongings)


def _settings(paths: Paths) -> DaemonSettings | None:
    # A configuration that cannot be read names no other place, and its mending must not wait.
    with contextlib.suppress(ConfigError):
        return UserConfig(dict(os.environ), paths).at_start.settings.daemon
    return None


def store_file_at(file: Path, belongings: Sequence[Path] = ()) -> StoreFile:
    """That file, a backup say; it need not exist, and is opened only when it is asked.

    Args:
        file: Where it is.
        belongings: Directories with an entry for each run in it.
    """
    return SqliteStore(file, belongings=belongings)


def problems_of(database: Database) -> list[str]:
    """What the database finds in itself.

    Raises:
        StoreUnavailable: There is none, or it cannot be read.
        CorruptState: It is not ours, of a newer version, or empty beside what runs left.
    """
    database.open_readonly()
    with closing(database):
        return list(database.check())
