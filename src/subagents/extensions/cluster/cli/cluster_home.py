"""This home as one of a cluster, for commands: its settings, its files, its database."""

import os
from typing import TYPE_CHECKING, NamedTuple

from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError
from subagents.installation import extra_command

if TYPE_CHECKING:  # of an extra, and half a second to import
    from subagents.extensions.cluster.trust.trust_files import TrustFiles
    from subagents.extensions.cluster.trust.trust_tables import TrustTables


class ClusterHome(NamedTuple):
    """What the commands need of this home."""

    settings: Settings
    files: "TrustFiles"
    tables: "TrustTables"

    @property
    def node(self) -> str:
        return self.settings.daemon.node or os.uname().nodename


def cluster_home(paths: Paths, *, store: str | None = None) -> ClusterHome:
    """Read the configuration; nothing is connected to yet.

    Args:
        paths: The home.
        store: Instead of ``daemon.store``.

    Raises:
        ConfigError: There is no database that a cluster could share, or subagents[cluster] is not
            installed.
    """
    overrides = {} if store is None else {"daemon.store": store}
    settings = UserConfig(dict(os.environ), paths, overrides).at_start.settings
    if settings.daemon.store is None:
        raise ConfigError(
            "the nodes of a cluster share a PostgreSQL database, and daemon.store is not set",
            hint='add [daemon] store = "postgresql://…" to subagents.toml, or set'
            " SUBAGENTS_DAEMON__STORE",
            details={"keys": ["daemon.store"]},
        )
    try:
        from subagents.extensions.cluster.trust.trust_files import TrustFiles  # noqa: PLC0415
        from subagents.extensions.cluster.trust.trust_tables import TrustTables  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"a cluster needs {error.name}, which is not installed",
            hint=extra_command("cluster"),
        ) from error
    return ClusterHome(settings, TrustFiles(paths.cluster_dir), TrustTables(settings.daemon.store))
