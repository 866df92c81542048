"""Which runs a list is about: the query parameters that ``/v1/runs`` and ``/v1/tree`` share."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final, TypeVar

from subagents.api.calls.call import flag_in
from subagents.api.wire.decoding import one_of
from subagents.api.wire.parameters import Parameter, choices, flag, word
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase
from subagents.domain.run.values import SessionKey
from subagents.errors import UsageError
from subagents.ports import RunFilter
from subagents.text import parse_time

Word = TypeVar("Word", bound=StrEnum)
TEXT_CHARS_MAX: Final = 1_000

SEARCH: Final[tuple[Parameter, ...]] = (
    word("label", "Only runs with this label."),
    choices("phase", "Only runs in these phases.", Phase),
    choices("outcome", "Only ended runs with these outcomes.", Status),
    word("agentId", "Only runs of this agent."),
    word("requester", "Only runs that this session asked for."),
    word("directory", "Only runs that work in this directory or below it; absolute."),
    word("tag", "Only runs with this tag; with commas: with all of these."),
    word("since", "Only runs spawned since then: 5m, 2h, 1d ago, or an ISO time."),
    word("until", "Only runs spawned before then: 5m, 2h, 1d ago, or an ISO time."),
    word("text", "Only runs whose label or task contains this; case does not matter."),
    flag("archived", "Archived runs, too."),
)


def search_in(query: Mapping[str, str], *, now_ms: int) -> RunFilter:
    """The filter that the ``SEARCH`` parameters of a query say; those that are not given are off.

    Raises:
        UsageError: Names the parameter, and what may stand there.
    """
    directory, text = query.get("directory"), query.get("text")
    if directory is not None and not PurePosixPath(directory).is_absolute():
        raise UsageError(
            f'directory must be absolute, not "{directory[:200]}"', details={"field": "directory"}
        )
    if text is not None and len(text) > TEXT_CHARS_MAX:
        raise UsageError(
            f"text must have at most {TEXT_CHARS_MAX:,} characters", details={"field": "text"}
        )
    return RunFilter(
        requester=SessionKey(query["requester"]) if "requester" in query else None,
        phases=some_of("phase", query.get("phase"), Phase),
        outcomes=some_of("outcome", query.get("outcome"), Status),
        label=query.get("label"),
        agent_id=query.get("agentId"),
        directory=directory,
        tags=tuple(tag for each in query.get("tag", "").split(",") if (tag := each.strip())),
        text=text or None,
        since_ms=_time_in(query, "since", now_ms),
        until_ms=_time_in(query, "until", now_ms),
        archived=flag_in(query, "archived"),
    )


def some_of(name: str, text: str | None, known: type[Word]) -> tuple[Word, ...] | None:
    """One word, or several with commas between them; None when none was given.

    Raises:
        UsageError: Names the parameter and lists the words there are.
    """
    if text is None:
        return None
    return tuple(known(one_of(name, each.strip(), list(known))) for each in text.split(","))


def _time_in(query: Mapping[str, str], name: str, now_ms: int) -> int | None:
    text = query.get(name)
    return None if text is None else parse_time(text, now_ms=now_ms, field=name)
