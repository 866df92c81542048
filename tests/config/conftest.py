"""Fixtures of the configuration's tests."""

from tests.config.places import place
from tests.config.starter_places import nothing_bundled

__all__ = ["nothing_bundled", "place"]
