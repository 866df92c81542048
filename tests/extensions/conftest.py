"""Homes for tests of extensions' commands, and a daemon for those of what they answer."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.api.home_daemon import CONFIG, Home, serving
from tests.cli.conftest import home, shared

__all__ = ["home", "shared"]


@pytest.fixture
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Home]:
    """A daemon in this process that answers while the test runs; ``configured`` says how."""
    mark = request.node.get_closest_marker("configured")
    return serving(tmp_path, CONFIG if mark is None else mark.args[0])
