"""What subagents costs, measured beside what the machine can do; see README.md."""
