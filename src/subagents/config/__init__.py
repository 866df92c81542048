"""Configuration: what `subagents.toml` says, where state lives, and how both are found.

`layers.load` (or, for many calls, `layers.ConfigCache`) gives a `Config`; `paths.Paths.resolve` the
directories.
"""
