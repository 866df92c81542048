"""Tools that look at runs: ``sessions_list`` and ``sessions_tree``."""

from typing import Final

from msgspec import json

from subagents.api.answers import run_building
from subagents.api.calls.call import find_run
from subagents.api.calls.run_search import in_states
from subagents.api.calls.services import Services
from subagents.api.tools import tool_wording
from subagents.api.tools.tool import Answer, Call, picked
from subagents.api.tools.tool_arguments import ListArguments, TreeArguments, decoded
from subagents.api.wire.decoding import one_of
from subagents.api.wire.run_answers import RunRow
from subagents.api.wire.wire_struct import Document
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Mode
from subagents.engine.runs.queries import TREE_NODES_MAX, Count, RunTree
from subagents.ports import RunFilter
from subagents.text import counted, shortened

ROW: Final = (
    *("sessionKey", "runId", "label", "agentId", "runStatus", "pendingRequestCount"),
    *("blockedReason", "phase", "outcome", "latestProgress", "usage", "subtreeUsage", "startedAt"),
    "endedAt",
)
NODE: Final = (
    *("sessionKey", "runId", "label", "runStatus", "pendingRequestCount", "phase", "verification"),
    *("claim", "latestProgress", "subtreeUsage", "budget"),
)
MINUTE_MS: Final = 60_000
ROOTS_MAX: Final = 50


async def list_sessions(call: Call) -> Answer:
    """The caller's own runs, newest first."""
    asked = decoded(call, ListArguments)
    services = call.services
    kinds = {Mode(one_of("kinds", kind, list(Mode))) for kind in asked.kinds}
    minutes = asked.active_minutes
    where = RunFilter(
        requester=services.engine.queries.inbox_of(call.caller.session),
        label=asked.label,
        agent_id=asked.agent_id,
        tags=() if asked.tag is None else (asked.tag,),
        # Both kinds, or none, is no restriction.
        keeps_session=Mode.SESSION in kinds if len(kinds) == 1 else None,
        active_since_ms=(
            None if minutes is None else services.now_ms() - round(minutes * MINUTE_MS)
        ),
        limit=asked.limit,
        offset=asked.offset,
    )
    return await listed(services, in_states(where, phase=asked.phase))


async def listed(services: Services, where: RunFilter) -> Answer:
    """A page of runs, and how many more there are."""
    found = await services.engine.queries.page(where)
    now_ms, total = services.now_ms(), found.total.number
    shown = (run_building.shown(RunRow, run, now_ms) for run in found.runs)
    rows = [for_overview(picked(each, ROW)) for each in shown]
    rows = rows[: tool_wording.room_for(len(json.encode(each)) for each in rows)]
    after = where.offset + len(rows)
    has_more = found.has_more or len(rows) < len(found.runs)
    structured: Document = {
        "sessions": rows,
        "total": total,
        "nextOffset": after if has_more else None,
    }
    lines = [tool_wording.line(run) for run in found.runs[: len(rows)]]
    if found.total.is_bound:
        structured["totalIsBound"] = True
        lines.append(f"more than {total - after} more: offset={after}")
    elif has_more:
        lines.append(f"{total - after} more: offset={after}")
    if not lines:
        none = f"No runs from offset {where.offset} on ({total})."
        lines.append("No runs." if total == 0 else none)
    if found.hidden.number:
        structured["archived"] = found.hidden.number
        more = ""
        if found.hidden.is_bound:
            structured["archivedIsBound"] = True
            more = "more than "
        hidden = counted(found.hidden.number, "archived run")
        lines.append(f"{more}{hidden} not listed: sessions_history by id")
    return Answer(text=tool_wording.joined(lines), structured=structured)


def for_overview(document: Document) -> Document:
    """A row with its texts cut: a page of rows is for an overview."""
    return {name: _short(each) for name, each in document.items()}


def _short(value: object) -> object:
    if isinstance(value, str):
        return shortened(value, tool_wording.ENTRY_CHARS_MAX)
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return value


async def tree(call: Call) -> Answer:
    """The caller's trees, or the one below ``root``."""
    asked = decoded(call, TreeArguments)
    services = call.services
    if asked.root is None:
        session = services.engine.queries.inbox_of(call.caller.session)
        where = RunFilter(requester=session, limit=ROOTS_MAX)
        roots, found = await services.engine.queries.roots(where)
        older = Count(max(found.total.number - len(roots), 0), is_bound=found.total.is_bound)
    else:
        run = await find_run(services, asked.root, call.caller)
        roots, older = (await services.engine.queries.tree(run.id, most=TREE_NODES_MAX),), Count(0)
    drawing = Drawing(services.now_ms(), asked.depth)
    nodes = [node for each in roots if (node := drawing.node(each, 0)) is not None]
    structured: Document = {"roots": nodes}
    lines = drawing.lines
    if drawing.hidden:
        structured["hidden"] = drawing.hidden
        lines.append(f"{drawing.hidden} more runs: give root or a smaller depth")
    if older.number:
        structured["olderRoots"] = older.number
        more = ""
        if older.is_bound:
            structured["olderRootsIsBound"] = True
            more = "more than "
        lines.append(f"{more}{older.number} older runs of yours: sessions_list")
    return Answer(text=tool_wording.joined(lines or ["No runs."]), structured=structured)


class Drawing:
    """Trees in both forms of an answer, down to a depth; as many nodes as one answer bears."""

    def __init__(self, now_ms: int, depth_max: int) -> None:
        self.lines: list[str] = []
        self.hidden = 0
        self._left = tool_wording.ANSWER_BYTES_MAX
        self._now_ms = now_ms
        self._depth_max = depth_max

    def node(self, found: RunTree, depth: int) -> Document | None:
        """The node with those below it; None when there is no room for it."""
        if self._left <= 0:
            # No room: it counts with everything below it.
            self.hidden += 1 + _count(found)
            return None
        self.lines.append(f"{'  ' * depth}{_line(found.run)}")
        shown = for_overview(picked(run_building.node(found.run, [], self._now_ms), NODE))
        self._left -= len(json.encode(shown))
        if depth + 1 < self._depth_max:
            children = [self.node(child, depth + 1) for child in found.children]
        else:
            children = []
            self.hidden += _count(found) - found.left_out
        self.hidden += found.left_out
        return {**shown, "children": [child for child in children if child is not None]}


def _count(found: RunTree) -> int:
    """How many runs are below."""
    return found.left_out + sum(1 + _count(child) for child in found.children)


def _line(run: Run) -> str:
    pending = len(run.pending_requests)
    asks = f" [{pending} open question{'s' if pending > 1 else ''}]" if pending else ""
    return f"{tool_wording.line(run)}{asks}"
