"""``cluster status drain forget``; none starts a daemon in place of the one to be a node."""

import time
from collections.abc import Iterator
from typing import Annotated, Final

from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Parameter, Yes, refuse_unused
from subagents.errors import EXIT_FAILED, EXIT_OK, EXIT_PENDING
from subagents.extensions.cluster.api.cluster_answers import Cluster, ClusterNode
from subagents.extensions.cluster.shared_store import WENT_BACK_FIX
from subagents.text import counted, duration, parse_duration

PLACE: Final = "/v1/cluster"
REFUSED: Final = "refused since its start: {} of nodes without this cluster's secret"
SHOWN_MAX: Final = 5
LOOK_S: Final = 0.5
"""The time between two looks at whether a node is drained."""


def status(*, json: Json = False) -> int:
    """List the nodes of the cluster, as the one of this home sees them.

    PARTS counts the partitions, of 256, that a node decides about. Each node is called at its url.

    For example:

        subagents cluster status

        subagents cluster status --json=name,alive,partitions
    """
    with connect(starts=None) as client:
        answer = client.get(PLACE, {"doors": "true"})
    if json:
        output.document(answer)
        return EXIT_OK
    found = read(answer, Cluster)
    output.table(
        ["node", "state", "parts", "slots", "labels", "version", "url"],
        [
            [
                f"{each.name} (here)" if each.is_self else each.name,
                state_of(each),
                str(each.partitions),
                "-" if each.slots is None else str(each.slots),
                ",".join(each.labels) or "-",
                each.version,
                each.url or "-",
            ]
            for each in found.nodes
        ],
        styles={1: 1},
        cut=(6, 4),
    )
    for text, fix in troubles(found):
        output.note(f"{text}; {fix}")
    if found.unowned:
        output.note(f"{counted(found.unowned, 'partition')} without a node")
    if found.refused:
        output.note(REFUSED.format(counted(found.refused, "caller or row", "callers or rows")))
    return EXIT_OK


def troubles(found: Cluster) -> Iterator[tuple[str, str]]:
    """What is wrong, and what to do, of each node that is alive; and of the database."""
    if found.went_back:
        yield f"the database went back in time: {found.went_back}", WENT_BACK_FIX
    for each in found.nodes:
        if each.alive and each.degraded:
            fix = "free it on its machine; until then others take its sessions, if one can"
            yield f"node {each.name} starts nothing: {each.degraded}", fix
        if each.unreached:
            fix = f"on {each.name}, set cluster.url to what leads to its cluster.listen from here"
            yield f"node {each.name} is not reached at {each.url}: {each.unreached}", fix


def state_of(node: ClusterNode) -> str:
    """In a word or two."""
    if not node.alive:
        over_ms = max(round(-node.left_seconds * 1000), 0)
        return f"over {duration(over_ms).split()[0]}"
    if node.degraded:
        return "degraded"
    return "draining" if node.draining else "alive"


def drain(
    *,
    wait: Annotated[
        bool, Parameter(help="Return when it decides about nothing and no worker is left here.")
    ] = False,
    timeout: Annotated[
        str | None,
        Parameter(help="With --wait: at most so long, then exit 8.", metavar="DURATION"),
    ] = None,
    undo: Annotated[bool, Parameter(help="Take its share of partitions again.")] = False,
    json: Json = False,
) -> int:
    """Let other nodes decide about the sessions of this home's node, which begins nothing more.

    Its workers go on here, also over a restart of the daemon; of those that the end of the machine
    would cut off it says what becomes of them. `--undo` takes it back, and so does a restart.

    For example:

        subagents cluster drain --wait && subagents down --yes

        subagents cluster drain --wait --timeout 5m

        subagents cluster drain --undo
    """
    refuse_unused("needs --wait", timeout=timeout is not None and not wait)
    refuse_unused("is not done together with --undo: give one of them", wait=wait and undo)
    limit_s = None if timeout is None else parse_duration(timeout, field="--timeout") / 1000
    due = None if limit_s is None else time.monotonic() + limit_s
    with connect(starts=None) as client:
        answer = client.post(f"{PLACE}/drain", {"on": not undo})
        found = read(answer, Cluster)
        if not undo and not any(
            each.alive and not each.draining and not each.is_self for each in found.nodes
        ):
            output.note("warning: no other node is alive to take its partitions over")
        if found.work_here:
            output.note(_at_stake(found))
        while wait and _left(found):
            if due is not None and time.monotonic() >= due:
                break
            time.sleep(LOOK_S)
            answer = client.get(PLACE)
            found = read(answer, Cluster)
    parts = sum(each.partitions for each in found.nodes if each.is_self)
    if json:
        output.document(answer)
    elif undo:
        output.note("This node takes its share of partitions again.")
    elif parts:
        output.note(f"This node is draining: {counted(parts, 'partition')} left.")
    elif found.work_here:
        output.note(f"This node decides about nothing. {_at_stake(found)}")
    else:
        output.note("This node is drained: it decides about nothing, and nothing works here.")
    return EXIT_PENDING if wait and _left(found) else EXIT_OK


def forget(
    node: Annotated[str, Parameter(help="Its name, as `subagents cluster status` shows it.")],
    /,
    *,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Let others take over at once from a node whose machine is gone.

    They do so by themselves when its right is over, but wait for longer where that node knew none
    of them. What still works on its machine would work twice: switch that off first.

    For example:

        subagents cluster forget b

        subagents cluster forget b --yes
    """
    if not output.is_confirmed(f"Is the machine of node {node} off, or cut off for good?", yes=yes):
        return EXIT_FAILED
    with connect(starts=None) as client:
        answer = client.post(f"{PLACE}/forget", {"node": node})
    if json:
        output.document(answer)
    else:
        output.note(f"Node {node} is over: others take its partitions.")
    return EXIT_OK


def _at_stake(found: Cluster) -> str:
    """What works here, and what becomes of it without this machine."""
    ends = ("will be lost", "will be repeated elsewhere")
    shown = [f"{e.run_id} ({e.label}) {ends[e.repeated]}" for e in found.work_here[:SHOWN_MAX]]
    if (more := len(found.work_here) - len(shown)) > 0:
        shown.append(f"{more} more")
    runs = counted(len(found.work_here), "run")
    return f"{runs} still at work here; if this machine stops now: {', '.join(shown)}."


def _left(found: Cluster) -> int:
    """What it is still needed for."""
    return sum(e.partitions for e in found.nodes if e.is_self) + len(found.work_here)
