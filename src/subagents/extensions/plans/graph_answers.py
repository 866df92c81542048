"""Answers that show runs as a graph: which waits for which, and which spawned which."""

from subagents.api.wire.listing import Listing
from subagents.api.wire.run_answers import BelowCounts, Standing, Verdict, Wait
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.api.wire.words import UNSAID, EdgeKind, RunStatusWord


class GraphNode(Standing, frozen=True, kw_only=True):
    """A run in a graph."""

    agent_id: str = ""
    """The configured agent."""
    run_status: RunStatusWord = UNSAID
    """One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase."""
    why: str = ""
    """Why it is where it is, in one sentence."""
    wait: Wait | None = None
    """What it waits for, as data; null = nothing: it is at work, or has ended."""
    verdict: Verdict | None = None
    """What its contract found; null without a contract, and until it is known."""
    vacuous: bool = False
    """Its contract was met before the work began: that it is met proves nothing."""
    pending_request_count: int = 0
    """Open questions of its worker."""
    started_at: Time | None = None
    """When its first attempt began."""
    ended_at: Time | None = None
    """When its outcome was known."""
    below: BelowCounts | None = None
    """The runs below a plan, by state, which are no nodes; null = there are none."""


class GraphEdge(WireStruct, frozen=True, kw_only=True):
    """From one node to another."""

    source: str = ""
    """The run that has to end first, or that spawned the other."""
    target: str = ""
    """The run that waits for it, or that it spawned."""
    kind: EdgeKind = UNSAID
    """`waits` or `spawned`."""


class Graph(Listing, frozen=True, kw_only=True):
    """A plan or a tree of runs: what is cut away takes its edges with it."""

    plan_id: str | None = None
    """The id of the plan; null = it is a tree."""
    name: str | None = None
    """The name of the plan, as it was given."""
    nodes: list[GraphNode] = []
    """The nodes, at most `limit`: the steps of the plan in its order, or the tree level after
    level."""
    edges: list[GraphEdge] = []
    """The edges between these nodes."""
    runs: int = 0
    """How many nodes there are, also those that are cut away."""
    states: dict[str, int] = {}
    """How many of them have each `runStatus`."""
