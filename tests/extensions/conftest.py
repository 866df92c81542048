"""Homes for tests of extensions' commands."""

from tests.cli.conftest import home, shared

__all__ = ["home", "shared"]
