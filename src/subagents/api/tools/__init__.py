"""The tools agents see, apart from the door they come through: MCP, HTTP and Python share them.

Source: 3-tools.
"""
