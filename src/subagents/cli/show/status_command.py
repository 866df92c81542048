"""``status``: how runs are doing now, on two lines each."""

from subagents.cli.flags import Json, SomeRuns
from subagents.cli.show import run_status
from subagents.cli.show.search_flags import EVERYTHING, Search


def status(*runs: SomeRuns, search: Search = EVERYTHING, json: Json = False) -> int:
    """Show what runs are doing now: state, time, tokens and last activity.

    Without a run: all that have not ended and fit the search.

    For example:

        subagents status

        subagents status --dir . --agent claude

        subagents status tests lint --json
    """
    return run_status.show_status(runs, search.query(), json=json)
