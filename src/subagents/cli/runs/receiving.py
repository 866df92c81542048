"""``wait``: results, each of which counts as read only once it is printed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Annotated, Json, Parameter, SomeRuns
from subagents.cli.runs import follow, selectors
from subagents.errors import EXIT_INTERRUPTED
from subagents.text import parse_duration

if TYPE_CHECKING:
    from subagents.cli.runs.follow import RunGroup


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
    with connect(starts=True) as client:
        named = selectors.expand(client, runs)
    return received(named, is_any=any_, timeout=timeout, json=json)


def received(
    named: Sequence[str],
    *,
    is_any: bool,
    timeout: str | None,
    json: bool,
    group: "RunGroup | None" = None,
) -> int:
    """Wait for these runs, and print their results; the exit code says how they went."""
    timeout_s = None if timeout is None else parse_duration(timeout, field="--timeout") / 1000
    is_live = follow.can_draw() and not json and timeout_s != 0
    until = "any" if is_any else "all"
    try:
        waiting = follow.wait_for(
            named, until=until, timeout_s=timeout_s, is_live=is_live, starts=True, group=group
        )
    except KeyboardInterrupt:
        output.note("\nStopped waiting; the runs continue.")
        return EXIT_INTERRUPTED
    return follow.told(waiting, json=json, is_any=is_any)
