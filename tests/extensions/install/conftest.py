"""Fixtures of what agent programs and we know of each other."""

from tests.config.starter_places import nothing_bundled

__all__ = ["nothing_bundled"]
