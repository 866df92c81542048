"""The flags by which ``list`` and ``stats`` find runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from subagents.cli import output
from subagents.cli.connection import session as own_session
from subagents.cli.connection import session_of
from subagents.cli.flags import WHEN, Annotated, Argument, Parameter, Together, moment
from subagents.cli.runs import selectors
from subagents.errors import UsageError
from subagents.text import counted

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import RunForest, RunPage
    from subagents.client.client import Client

SEARCH: Final = "Search"
BOTH: Final = "name runs or search for them, not both"


def search_query(
    *,
    directory: str | None = None,
    session: str | None = None,
    mine: bool = False,
    agent: str | None = None,
    label: str | None = None,
    tag: Sequence[str] = (),
    state: str | None = None,
    phase: str | None = None,
    outcome: str | None = None,
    since: str | None = None,
    until: str | None = None,
    text: str | None = None,
    model: str | None = None,
) -> dict[str, str]:
    """The parameters of ``/v1/runs`` and ``/v1/tree`` for the flags that were given.

    Raises:
        UsageError: ``--mine`` with ``--session``, an unknown phase, or no name of a session.
    """
    if mine and session is not None:
        raise UsageError("--mine and --session exclude each other")
    wanted = own_session() if mine else session and session_of(session)
    found = {
        "directory": None if directory is None else selectors.directory(directory),
        "requester": wanted,
        "agentId": agent,
        "label": label,
        "tag": ",".join(tag),
        "state": state and selectors.states(state),
        "phase": phase and selectors.phases(phase),
        "outcome": outcome,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
        "q": text,
        "model": model,
    }
    return {name: value for name, value in found.items() if value}


def _flag(name: str, metavar: str, text: str, *, attribute: str = "", **more: Any) -> Argument:
    names = (f"--{name}",)
    return Argument(attribute or name, names, help=text, metavar=metavar, group=SEARCH, **more)


SEARCH_FLAGS: Final = (
    _flag("dir", "DIR", "Only runs working in or below DIR.", attribute="directory"),
    _flag("session", "NAME", "Only runs spawned by this session: its key or name."),
    _flag("mine", "", "Only runs spawned by your own session.", kind=bool),
    _flag("agent", "NAME", "Only runs of this agent."),
    _flag("label", "LABEL", "Only runs with this label."),
    _flag("tag", "TAG", "Only runs with this tag; repeatable, all must fit.", is_list=True),
    _flag("state", "STATE,…", f"Only runs in these states: {', '.join(selectors.SHOWN)}."),
    _flag("phase", "NAME,…", "Only runs in these phases.", is_everyday=False),
    _flag(
        "outcome",
        "NAME,…",
        "Only runs with these outcomes: ok, partial, error, timeout, cancelled, lost.",
        is_everyday=False,
    ),
    _flag("since", "WHEN", f"Only runs spawned since: {WHEN}."),
    _flag("until", "WHEN", "Only runs spawned before."),
    _flag("text", "TEXT", "Only runs whose label, task or id has it."),
    _flag("model", "NAME", "Only runs of this model."),
)
Search = Annotated[Mapping[str, str], Together(search_query, lambda: SEARCH_FLAGS)]
Archived = Annotated[bool, Parameter(help="Include archived runs.", group=SEARCH)]
EVERYTHING: Final = dict[str, str]()
NO_RUNS: Final = "No runs. Start one: subagents run 'echo hello'"


def say_hidden(found: "RunPage | RunForest") -> None:
    """How many runs are not shown because they are archived."""
    if found.hidden:
        more = "more than " if found.hidden_is_bound else ""
        output.note(f"{more}{counted(found.hidden, 'archived run')} not shown: --archived")


def nothing(client: "Client", elsewhere: str) -> str:
    """What to say where no run is shown and none is hidden: there may be others."""
    everything = client.get("/v1/runs", {"archived": 1, "limit": 1})
    return elsewhere if everything.get("total") else NO_RUNS
