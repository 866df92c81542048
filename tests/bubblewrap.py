"""Tests of what only bubblewrap can do here are skipped without it."""

import pytest

from subagents.runtimes.process import sandbox

NO_SANDBOX = sandbox.problem()
needs_bubblewrap = pytest.mark.skipif(
    NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}"
)
