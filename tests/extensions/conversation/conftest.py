"""Fixtures of programs that are looked for."""

from tests.config.starter_places import nothing_bundled

__all__ = ["nothing_bundled"]
