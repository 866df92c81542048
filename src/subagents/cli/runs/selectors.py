"""Selectors that name several runs: ``tree:RUN`` and ``phase:NAME[,NAME]``.

The daemon knows ids, prefixes, labels and ``last``; these two are spelled out here into ids.
"""

from collections.abc import Sequence
from typing import Final

from subagents.api.wire.run_answers import RunPage, RunRow
from subagents.api.wire.wire_struct import read
from subagents.client.client import Client, Query, segment
from subagents.domain.run.run import Phase
from subagents.errors import NotFound, UsageError

PAGE: Final = 1000
TREE: Final = "tree:"
PHASE: Final = "phase:"


def is_several(selector: str) -> bool:
    return selector.startswith((TREE, PHASE))


def phases(text: str) -> str:
    """Check a comma-separated list of phases.

    Raises:
        UsageError: Names the unknown one and lists what there is.
    """
    names = [name.strip() for name in text.split(",")]
    known = [phase.value for phase in Phase]
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no phase {name!r}",
                hint=f"phases: {', '.join(known)}",
                details={"field": "phase"},
            )
    return ",".join(names)


def rows(client: Client, selector: str) -> list[RunRow]:
    """The runs of a ``tree:`` or ``phase:`` selector, all pages of them."""
    if selector.startswith(PHASE):
        return listed(client, {"phase": phases(selector.removeprefix(PHASE))})
    root = selector.removeprefix(TREE)
    if not root:
        raise UsageError("tree: needs a run, such as tree:last")
    return listed(client, {"tree": root})


def listed(client: Client, query: Query) -> list[RunRow]:
    """Every run of a list, newest first, on however many pages.

    Runs that leave the list meanwhile move the others forward: each page begins with a run that
    the one before had, and where it does not, the page before is read again.
    """
    found: dict[str, RunRow] = {}
    offset = 0
    while True:
        page = read(client.get("/v1/runs", {**query, "limit": PAGE, "offset": offset}), RunPage)
        if offset and not any(row.run_id in found for row in page.runs):
            offset = max(0, offset - PAGE + 1)
            continue
        found.update((row.run_id, row) for row in page.runs)
        if len(page.runs) < PAGE:
            return list(found.values())
        offset += PAGE - 1


def expand(client: Client, selectors: Sequence[str]) -> list[str]:
    """Ids for ``tree:`` and ``phase:``, the other selectors as they are; each once.

    Raises:
        NotFound: A ``tree:`` or ``phase:`` selector matches nothing.
    """
    found: list[str] = []
    for selector in selectors:
        if not selector.strip():
            raise UsageError("name the run by id, prefix, label or `last`")
        if is_several(selector):
            matched = [row.run_id for row in rows(client, selector)]
            if not matched:
                raise NotFound(f"no run matches {selector}", hint="see: subagents list")
            found += matched
        else:
            found.append(selector)
    return list(dict.fromkeys(found))


def path_of(selector: str, rest: str = "") -> str:
    """The URL path of one run.

    Raises:
        UsageError: A selector for several runs where one is meant.
    """
    if is_several(selector):
        raise UsageError(
            f"{selector} may match several runs; this command takes one",
            hint="name it by id, prefix, label or `last`",
        )
    if not selector.strip():
        raise UsageError("name the run by id, prefix, label or `last`")
    return f"/v1/runs/{segment(selector)}{rest}"
