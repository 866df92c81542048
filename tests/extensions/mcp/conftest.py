"""What tests of MCP have a daemon from."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.api.home_daemon import Home, serving
from tests.api.tools import tool_callers


@pytest.fixture
def daemon(tmp_path: Path) -> AbstractAsyncContextManager[Home]:
    """A daemon in this process, with the agents that callers of tools have."""
    return serving(tmp_path, tool_callers.CONFIG)
