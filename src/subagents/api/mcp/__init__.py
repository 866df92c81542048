"""The daemon's MCP endpoint, at ``/mcp``; only ``mcp_endpoint`` loads without ``mcp``."""
