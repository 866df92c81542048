"""What tests of the API have a daemon from."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.api import home_daemon
from tests.api.home_daemon import Home
from tests.api.tools import tool_callers
from tests.api.tools.tool_callers import ToolCaller


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Home]:
    """A daemon in this process that answers while the test runs; ``configured`` says how."""
    mark = request.node.get_closest_marker("configured")
    return home_daemon.serving(tmp_path, home_daemon.CONFIG if mark is None else mark.args[0])


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[ToolCaller]:
    """A top-level session of such a daemon."""
    mark = request.node.get_closest_marker("configured")
    return tool_callers.at_desk(tmp_path, tool_callers.CONFIG if mark is None else mark.args[0])
