"""One local service that any agent can call and any agent can work for."""

__version__ = "0.1.0"
