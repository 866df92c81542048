"""Which store a home has: besides ``wiring``, which asks here, nobody names one.

Apart from it because commands that need a store and no engine start in a third of the time.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError
from subagents.ports import Database, Member, Permits, SharedStore, Store, StoreFile
from subagents.store.sqlite.sqlite_store import HELD_BYTES, SqliteStore

POSTGRES_LOCK: Final = "postgres.lock"
"""In the state directory of a home whose store is in PostgreSQL."""


def store_of(paths: Paths, settings: DaemonSettings, member: Member | None = None) -> Store:
    """The configured store; nothing is opened yet.

    Args:
        paths: The home.
        settings: Of its daemon.
        member: What it says of itself to its cluster; None = it is in none, or only looks.

    Raises:
        ConfigError: What it needs is not installed, it is no address, or a cluster has no database
            that others reach.
    """
    if settings.store is None and member is not None:
        raise ConfigError(
            "cluster.listen is set, but daemon.store is not: a cluster needs one PostgreSQL for all"
            " of its nodes",
            hint='set daemon.store = "postgresql://…", or remove cluster.listen',
            details={"keys": ["cluster.listen", "daemon.store"]},
        )
    if settings.store is None:
        return SqliteStore(paths.database, held_bytes=HELD_BYTES, belongings=paths.belongings)
    try:
        from subagents.store.postgres.postgres_store import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"daemon.store is set, but {error.name} is not installed",
            hint="install subagents[postgres], or remove daemon.store: the database is then a file"
            " in the state directory",
            details={"keys": ["daemon.store"]},
        ) from error
    lock = paths.state_dir / POSTGRES_LOCK
    return PostgresStore(settings.store, lock, belongings=paths.belongings, member=member)


def shared_store(store: Store) -> SharedStore:
    """The same store, as what the nodes of a cluster share: it was made for a member of one."""
    return cast("SharedStore", store)


def permits_of(settings: DaemonSettings, store: SharedStore) -> Permits:
    """What the nodes of the store's cluster count together; nothing is opened yet."""
    from subagents.store.postgres.postgres_permits import PostgresPermits  # noqa: PLC0415 - an extra

    return PostgresPermits(settings.store or "", lambda: store.identity)


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
