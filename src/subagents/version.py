"""The version of this package; a module of its own, so that nobody imports the root for it."""

__version__ = "0.2.0"
