"""What tests of MCP's tasks have a daemon from."""

from tests.extensions.mcp.conftest import daemon

__all__ = ["daemon"]
