"""The version of this package; a module of its own, so that nobody imports the root for it."""

from typing import Final

__version__: Final = "0.2.0"
