"""What a Python program asks for when it spawns a run."""

from collections.abc import Mapping
from typing import Final, Required

from subagents.client.agent_tools import camel, camel_keys
from subagents.client.spawn_keywords import SpawnParameters
from subagents.errors import UsageError
from subagents.text import parse_duration

FLAGS: Final = {"agent": "agent_id", "timeout": "run_timeout_seconds", "retry": "retry_count"}
"""Parameters that are also known by the name of their flag."""
UNIT_UNSAID: Final = ("retry_delay", "retry_max_time")
"""Durations whose names do not say of which unit a number would be."""


class SpawnKeywords(SpawnParameters, total=False):
    """The spawn parameters, and two by the names of their flags."""

    timeout: float | str | None
    """Deadline of each attempt, in seconds or like ``5m``; 0 = none."""
    retry: int
    """Attempts after a failed one."""


class PlanRun(SpawnKeywords, total=False):
    """One run of ``Orchestrator.plan``: what ``spawn`` takes."""

    task: Required[str]
    """What to do; 1 byte to 256 KiB."""
    agent: str | None
    """Agent id; None = ``agents.defaults.subagents.agent``, refused where that is not set."""


def spawn_document(run: Mapping[str, object]) -> object:
    """The document of one run, with the names of flags resolved.

    Raises:
        UsageError: A flag and its parameter, or a duration without a unit.
    """
    given = dict(run)
    if given.get("agent") is None:
        given.pop("agent", None)
    for name in UNIT_UNSAID:
        if isinstance(number := given.get(name), int | float):
            raise UsageError(
                f"{name} must be a text with its unit: a number was milliseconds before 0.2, and is"
                " seconds everywhere else",
                hint=f'{name}="{number}ms", or "5s"',
                details={"field": name},
            )
    if isinstance(text := given.get("timeout"), str):
        given["timeout"] = parse_duration(text, field="timeout") / 1000
    for flag, name in FLAGS.items():
        if flag in given:
            if name in given:
                raise UsageError(f"{flag} and {name} are the same: give one of them")
            given[name] = given.pop(flag)
    return camel_keys({camel(name): value for name, value in given.items()})
