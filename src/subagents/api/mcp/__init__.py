"""The Model Context Protocol door of the daemon, at ``/mcp``; only ``door`` loads without ``mcp``.

Source: 5-surfaces §3.
"""
