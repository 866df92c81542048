"""What an extension's followers and couriers get from the daemon."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerHost:
    """The parts of one daemon that they may use; nothing of it is open yet."""

    store: Store
    paths: Paths
    settings: Settings
    """The settings when the daemon started."""
    settings_now: Callable[[], Settings]
    """Gives the settings as they are now."""
    environ: Mapping[str, str]
