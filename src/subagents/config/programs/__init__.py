"""The agent programs that are known: where they are, their versions, what probes found."""
