"""What a user can do without, one subject each; see ``subagents.extension``."""
