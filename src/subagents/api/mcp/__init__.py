"""The daemon's MCP endpoint, at ``/mcp``."""
