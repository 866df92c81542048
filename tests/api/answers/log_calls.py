"""Log calls to a daemon, and workers that say what a test wants."""

import json
from pathlib import Path
from typing import Any

from tests.api import home_daemon
from tests.api.home_daemon import CONFIG, Home, segment


def play(tmp_path: Path, scenario: Any, config: str = CONFIG) -> None:
    home_daemon.play(tmp_path / "home", scenario, config)


async def log_of(home: Home, run: str, **asked: object) -> dict[str, Any]:
    text = "&".join(f"{name}={segment(str(value))}" for name, value in asked.items())
    return await home.ok("GET", f"/v1/runs/{run}/log?{text}")


def events(*said: dict[str, object]) -> str:
    """Shell that prints structured events."""
    return "\n".join(f"echo '{json.dumps(each)}'" for each in said)
