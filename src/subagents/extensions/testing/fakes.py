"""Agents that play a script, for the tests of programs that spawn runs.

Everything else is real: a daemon of the test's own, its database, retries, contracts, the inbox.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Step: TypeAlias = Mapping[str, object]
"""``{"result": TEXT}``, ``{"error": TEXT}``, ``{"report": {…}}``, ``{"write": {"path": P, "text":
T}}``, ``{"exit": CODE}``, ``{"hang": True}``, …; docs/howto/testing.md lists them."""


def scripted_agents(**scripts: str | Sequence[Step]) -> dict[str, object]:
    """The ``config`` of ``Subagents.open`` and ``Orchestrator.open`` that has these agents.

    Args:
        scripts: For each agent by its id what its workers do, whatever they are asked: the steps,
            or a text that is their result. ``**{"code-review": "fine"}`` for an id with dashes.
    """
    config: dict[str, object] = {}
    for agent, script in scripts.items():
        steps = [{"result": script}] if isinstance(script, str) else [*script]
        config |= {f"agents.{agent}.runtime": "scripted", f"agents.{agent}.script": steps}
    return config
