"""Which store a home has: besides ``wiring``, which asks here, nobody names one.

Apart from it because commands that need a store and no engine start in a third of the time.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError
from subagents.ports import Store, StoreFile
from subagents.store.sqlite.sqlite_store import HELD_BYTES, SqliteStore

STORES: Final[Mapping[str, Callable[[str], Store]]] = {}
"""What makes a store of its address, by the word that the address begins with."""


def store_of(paths: Paths, settings: DaemonSettings) -> Store:
    """The configured store; nothing is opened yet.

    Raises:
        ConfigError: There is none for that address.
    """
    if settings.store is None:
        return SqliteStore(paths.database, held_bytes=HELD_BYTES, belongings=paths.belongings)
    kind = settings.store.partition(":")[0]
    if kind not in STORES:
        raise ConfigError(
            f"daemon.store: this version has no store for {kind}://",
            hint="remove daemon.store: the database is then a file in the state directory",
            details={"keys": ["daemon.store"]},
        )
    return STORES[kind](settings.store)


def store_file_of(paths: Paths) -> StoreFile | None:
    """The store of this user's home, where it is a file of this machine; None = it is elsewhere."""
    # A configuration that cannot be read names no other place, and its mending must not wait.
    with contextlib.suppress(ConfigError):
        if UserConfig(dict(os.environ), paths).at_start.settings.daemon.store is not None:
            return None
    return store_file_at(paths.database, paths.belongings)


def store_file_at(file: Path, belongings: Sequence[Path] = ()) -> StoreFile:
    """That file, a backup say; it need not exist, and is opened only when it is asked.

    Args:
        file: Where it is.
        belongings: Directories with an entry for each run in it.
    """
    return SqliteStore(file, belongings=belongings)
