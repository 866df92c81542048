"""The store of a home whose ``daemon.store`` is the address of a PostgreSQL database."""

from typing import TYPE_CHECKING, Final

from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.errors import ConfigError
from subagents.extensions.cluster.shared_store import Member, SharedStore
from subagents.installation import extra_command
from subagents.ports import Store

if TYPE_CHECKING:
    from subagents.extensions.cluster.trust.signing import Signer

LOCK: Final = "postgres.lock"
"""A file in the state directory of such a home."""
SIGNED: Final = "postgres.signed"
"""A file beside it; see ``Signer``."""


def storage(paths: Paths, settings: DaemonSettings) -> Store | None:
    """See ``Extension.storage``.

    Raises:
        ConfigError: What it needs is not installed, or it is no address.
    """
    return None if settings.store is None else postgres_store(paths, settings.store)


def postgres_store(
    paths: Paths, url: str, member: Member | None = None, signer: "Signer | None" = None
) -> SharedStore:
    """The store at that address; nothing is opened yet.

    Args:
        paths: The home.
        url: As in ``daemon.store``.
        member: What the home says of itself to its cluster; None = it is in none, or only looks.
        signer: Signs what work is started from; None = this home has no secret for it.

    Raises:
        ConfigError: As ``storage``.
    """
    try:
        from subagents.extensions.cluster.postgres.postgres_store import (  # noqa: PLC0415 - an extra
            PostgresStore,
        )
    except ImportError as error:
        raise ConfigError(
            f"daemon.store is set, but {error.name} is not installed",
            hint=f"{extra_command('postgres')}, or remove daemon.store: the database is then a file"
            " in the state directory",
            details={"keys": ["daemon.store"]},
        ) from error
    lock = paths.state_dir / LOCK
    return PostgresStore(url, lock, belongings=paths.belongings, member=member, signer=signer)
