"""Homes for command-line tests: one shared by tests that only add runs, one each for the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_home import Home


def _home(root: Path) -> Home:
    home = Home(root)
    home.work.mkdir()
    return home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A fresh home; its daemon, if any, is stopped at the end."""
    found = _home(tmp_path)
    try:
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a running daemon for all tests of a module."""
    found = _home(tmp_path_factory.mktemp("shared"))
    found.environ["SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CHILDREN_PER_AGENT"] = "100"
    try:
        found.ok("up")
        yield found
    finally:
        found.down()
