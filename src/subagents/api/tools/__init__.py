"""The tools agents see, whatever carries the call: MCP, HTTP and Python share them."""
