"""Tests of what only bubblewrap can do here are skipped without it."""

from collections.abc import Mapping

import pytest

from subagents.runtimes.process import sandbox
from subagents.runtimes.process.git_places import git_places

NO_SANDBOX = sandbox.problem()
needs_bubblewrap = pytest.mark.skipif(
    NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}"
)


def held(work: str) -> Mapping[str, str]:
    """What a sandbox holds of what is there; nothing is made."""
    found = git_places(work)
    return {place: how for place, how in found.mounts.items() if place not in found.missing}
