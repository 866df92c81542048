"""Homes for tests of commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, temporary_home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A fresh home; its daemon, if any, is stopped at the end."""
    with temporary_home(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a running daemon, for tests that only add runs."""
    with temporary_home(tmp_path_factory.mktemp("shared")) as found:
        found.ok("up")
        yield found
