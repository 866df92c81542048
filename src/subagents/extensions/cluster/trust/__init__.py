"""How the nodes of a cluster trust each other: by certificates in their rows, and by a secret.

Needs subagents[cluster]; see docs/decisions/0108.
"""
