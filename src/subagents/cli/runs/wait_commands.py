"""``wait`` and ``inbox``: take what came in; it counts as read only once it is printed."""

from typing import Annotated

from cyclopts import Parameter

from subagents.cli.flags import Json, SomeRuns
from subagents.cli.runs import receiving


def wait(
    *runs: SomeRuns,
    any_: Annotated[
        bool, Parameter(name="--any", help="Wait until one run has ended instead of all.")
    ] = False,
    timeout: Annotated[
        str | None, Parameter(help="Stop waiting after this long.", metavar="DURATION")
    ] = None,
    json: Json = False,
) -> int:
    """Wait for runs and print their results. Without a run, wait for all of this session's runs.

    The exit code is 0 if all runs succeeded, 5 if one did not, 6 if its verification failed and 8
    if some are still pending after --timeout.

    For example:

        subagents wait tests lint --timeout 10m

        subagents wait --any --json
    """
    return receiving.wait(runs, is_any=any_, timeout=timeout, json=json)


def inbox(
    *,
    all_: Annotated[
        bool, Parameter(name="--all", help="Include read messages and mark nothing as read.")
    ] = False,
    full: Annotated[
        bool, Parameter(negative="", help="Print whole texts, as models read them.")
    ] = False,
    limit: Annotated[int, Parameter(help="Show at most N. Default: 50.", metavar="N")] = 50,
    json: Json = False,
) -> int:
    """Show new messages for this session (results, questions, notices) and mark them as read.

    A line each; workers get the whole texts. What a pipe's reader does not take stays unread.

    For example:

        subagents inbox

        subagents inbox --all --full
    """
    return receiving.inbox(everything=all_, full=full, limit=limit, json=json)
