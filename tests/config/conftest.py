"""Fixtures of the configuration's tests."""

from tests.config.config_homes import home
from tests.config.starter_places import nothing_bundled

__all__ = ["home", "nothing_bundled"]
