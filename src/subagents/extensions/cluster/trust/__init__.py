"""How the nodes of a cluster trust each other: a CA of its own, and tokens to join it.

Needs subagents[cluster]; named by ``wiring`` and the command line alone.
"""
