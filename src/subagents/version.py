"""The version of this package, in its own module, so that reading it does not import the root."""

__version__ = "0.2.0"
