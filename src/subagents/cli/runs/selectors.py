"""Selectors that name several runs: tree, phase, plan, tag and directory.

The daemon knows ids, prefixes, labels and ``last``; these are spelled out here into ids.
"""

import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from subagents.cli.connection import caller_cwd
from subagents.cli.reading import read
from subagents.client.client import Client, Query, segment
from subagents.errors import NotFound, UsageError

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import RunPage, RunRow

PAGE: Final = 1000
TREE: Final = "tree:"
PLAN: Final = "plan:"
PHASES_AT_WORK: Final = (
    "waiting", "queued", "spawning", "running", "ending", "verifying", "retry_wait",
)  # fmt: skip
PHASES: Final = (
    *PHASES_AT_WORK,
    *("announcing", "announce_deferred", "cleanup_pending", "completed", "completed_giveup"),
)
"""Spelled out: a test compares them with the domain's, which takes longer to import than to ask."""
STATES: Final = (
    *PHASES,
    *("ok", "partial", "error", "timeout", "cancelled", "lost"),
    *("failed", "blocked", "paused"),
)
"""Every word that answers have of a run's state, spelled out as the phases are."""
SHOWN: Final = ("waiting", "working", "needs-you", "ok", "failed", "cancelled")
"""What people are shown of a run's state, as they type it."""
AT_WORK: Final = {"phase": ",".join(PHASES_AT_WORK)}
"""The parameters of ``/v1/runs`` for runs that have not ended."""
NONE_ACTIVE: Final = "No active runs. To see ended ones: subagents list"


def is_several(selector: str) -> bool:
    return selector.startswith(tuple(_SEVERAL))


def directory(text: str) -> str:
    """A directory as runs have theirs: absolute, seen from where the caller stands."""
    return os.path.normpath(os.path.join(caller_cwd(), os.path.expanduser(text)))  # noqa: PTH111, PTH118  pathlib takes longer to import


def states(text: str) -> str:
    """Check a comma-separated list of states.

    Raises:
        UsageError: Names the unknown one and lists what there is.
    """
    plain = text.replace(" ", "-").replace("_", "-").replace(",-", ",")
    return _known(plain, "state", SHOWN, f"states: {', '.join(SHOWN)}").replace("-", "_")


def phases(text: str) -> str:
    """Check a comma-separated list of phases, and of other words that answers have of a state.

    Raises:
        UsageError: Names the unknown one and lists what there is.
    """
    others = ", ".join(STATES[len(PHASES) :])
    return _known(text, "phase", STATES, f"phases: {', '.join(PHASES)}; other states: {others}")


def _known(text: str, kind: str, known: Sequence[str], hint: str) -> str:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {kind} {name!r}", hint=hint, details={"field": kind})
    return ",".join(names)


def query_of(selector: str) -> dict[str, str]:
    """The parameters of ``/v1/runs`` for a selector that names several runs.

    Raises:
        UsageError: It names nothing behind its colon.
    """
    kind, colon, name = selector.partition(":")
    parameter, form, read_name = _SEVERAL[f"{kind}{colon}"]
    if not name.strip():
        raise UsageError(f"{selector} needs a name: {kind}:{form}")
    return {parameter: read_name(name)}


_SEVERAL: Final[Mapping[str, tuple[str, str, Callable[[str], str]]]] = {
    TREE: ("tree", "RUN", str),
    "state:": ("state", "NAME,…", states),
    "phase:": ("phase", "NAME,…", phases),
    PLAN: ("plan", "NAME", str),
    "tag:": ("tag", "NAME", str),
    "dir:": ("directory", "DIR", directory),
}
"""The query parameter of each, what stands behind it, and how that is read."""


def rows(client: Client, selector: str) -> "list[RunRow]":
    """The runs of a selector that names several, all pages of them."""
    return listed(client, query_of(selector))


def listed(client: Client, query: Query) -> "list[RunRow]":
    """Every run of a list, newest first, on however many pages.

    Runs that leave the list meanwhile move the others forward: each page begins with a run that
    the one before had, and where it does not, the page before is read again.
    """
    found: dict[str, RunRow] = {}
    offset = 0
    while True:
        answer = client.get("/v1/runs", {**query, "limit": PAGE, "offset": offset})
        page: RunPage = read(client, answer, "run_answers:RunPage")
        if offset and not any(row.run_id in found for row in page.runs):
            # Nothing in common with the page before: what lies between was passed over.
            offset = max(0, offset - PAGE + 1)
            continue
        found.update((row.run_id, row) for row in page.runs)
        if len(page.runs) < PAGE:
            return list(found.values())
        offset += PAGE - 1


def expand(client: Client, selectors: Sequence[str]) -> list[str]:
    """Ids for selectors that name several runs, the others as they are; each once.

    Raises:
        NotFound: One that names several matches nothing.
    """
    found: list[str] = []
    for selector in selectors:
        if not selector.strip():
            raise UsageError("name the run by id, prefix, label or `last`")
        if is_several(selector):
            matched = rows(client, selector)
            if not matched:
                raise NotFound(f"no run matches {selector}", hint="see: subagents list")
            # Of a plan the newest run of each step counts.
            over = {row.retry_from for row in matched} if selector.startswith(PLAN) else set()
            found += [row.run_id for row in matched if row.run_id not in over]
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
            hint=f"name it by id, prefix, label or `last`; of all: subagents wait {selector}",
        )
    # Without a segment the path would be the one of all runs.
    if not selector.strip():
        raise UsageError("name the run by id, prefix, label or `last`")
    return f"/v1/runs/{segment(selector)}{rest}"
