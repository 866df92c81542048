"""Read models. Open runs are answered from what was committed last, ended ones from the store."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from subagents.domain.rules.admission import pending_requests
from subagents.domain.rules.parameter_checks import LAST
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import SETTLED, MessageKind, Phase, Request, Run
from subagents.domain.run.values import MessageId, RunId, SessionKey, Value, agent_of, replace
from subagents.domain.schedules.schedule import tag_of
from subagents.domain.text.announcement import ESCALATION_SUFFIX
from subagents.engine.kernel.addresses import answering_inbox
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.quarantine import Quarantine
from subagents.engine.messages.leases import UNREAD_LAPSES
from subagents.engine.messages.mailbox import Mailbox
from subagents.engine.records.recorder import Recorder
from subagents.errors import NotFound, UsageError
from subagents.ports import InboxRow, JournalEntry, LaneKey, RunFilter, SetAside

TREE_NODES_MAX: Final = 1_000
"""A tree that is drawn has no more runs, nor have all trees of a list below their roots together;
what is left out is counted."""
BELOW_MAX: Final = 20_000
"""How many runs below others are counted for one answer."""
SESSIONS_PAGE: Final = 200
SESSIONS_SEARCHED_MAX: Final = 5_000
"""Newest runs of an agent among which an ended session is searched."""
PREFIX_CHARS_MIN: Final = 3
"""Characters after ``r-``: a shorter word is a mistyped label rather than an id."""
SAME_LABEL_MAX: Final = 200
"""Newest runs of one label among which the one that may be seen is searched."""

COUNTED_MAX: Final = 1_000
"""How many runs are counted: no one looks at more one by one, and a count visits each."""

PLANS_PAGE: Final = 500
PLANS_SEARCHED_MAX: Final = 1_000
"""How many of the newest plans are searched for a name."""

MaySee = Callable[[Run], Awaitable[bool]]
Rank = Callable[[Run], float | None]
"""By what a list is in order, the greatest first; None = not known, and last."""


class Count(NamedTuple):
    """How many there are."""

    number: int
    is_bound: bool = False
    """There are more: counting ended there."""


class RunsFound(NamedTuple):
    """A page of a list of runs."""

    runs: tuple[Run, ...]
    total: Count
    """All that fit the filter, up to ``COUNTED_MAX`` or the end of the window if that is more."""
    hidden: Count
    """Archived ones that are left out; at most ``COUNTED_MAX`` are counted."""
    end: int
    """Where the next page begins."""

    @property
    def has_more(self) -> bool:
        """Whether there are older ones."""
        return self.total.is_bound or self.total.number > self.end


class Forest(NamedTuple):
    """The trees of a page of a list of runs, oldest first, and that page."""

    trees: tuple["RunTree", ...]
    found: RunsFound


class RunTree(Value, frozen=True):
    """A run with the runs its agent spawned."""

    run: Run
    children: tuple["RunTree", ...] = ()
    left_out: int = 0
    """Further runs that its agent spawned."""


class Descendants(NamedTuple):
    """The runs below some runs, by state."""

    of: Mapping[RunId, Sequence[tuple[Status | Run, int]]]
    """The runs below each run: outcomes with their numbers, and each run that is not over."""
    is_bound: bool
    """There are more: counting ended at ``BELOW_MAX``."""


MAY_ASK: Final = (Phase.WAITING, Phase.SPAWNING, Phase.RUNNING, Phase.ENDING)
OTHERS_LOOKED_AT: Final = 1_000
"""How many of the newest runs of other nodes are looked at."""
ESCALATIONS_LOOKED_AT: Final = 1_000
"""How many of the newest blockers, and of the runs of one requester, are looked at."""


class AttentionItem(Value, frozen=True):
    """Something a person should look at."""

    kind: str
    """``question``, ``blocker``, ``quarantined`` (we keep failing at it), ``undelivered``,
    ``failed``, or ``unread``: offered again and again, and never acknowledged. Of a run at work:
    ``stuck``, ``failure_loop``, ``api_error`` or ``budget_alert`` (``concerns``).
    """
    run: Run
    text: str
    since_ms: int
    request: Request | None = None
    """The open question."""
    message_id: MessageId | None = None
    """The unread message that it came with."""
    is_escalation: bool = False
    """It stays until somebody deals with it, or says so."""


class Queries:
    """Everything that reads and changes nothing."""

    def __init__(
        self, kernel: Kernel, mailbox: Mailbox, recorder: Recorder, quarantine: Quarantine
    ) -> None:
        self._ledger, self._store, self._off_loop, _ = kernel
        self._mailbox = mailbox
        self._recorder = recorder
        self._quarantine = quarantine

    # -- open runs, in memory --------------------------------------------------------------

    @property
    def open_runs(self) -> Collection[Run]:
        """Every run that is not over, as committed; a view that changes with the next commit."""
        return self._ledger.published.values()

    @property
    def seq(self) -> int:
        """Number of the newest event that whatever is read from here on shows.

        Where others write, too, it may be some older one: who follows from it hears of some twice.
        """
        return self._ledger.partitions.seen(self._ledger.number)

    def open_run(self, run_id: RunId) -> Run | None:
        """That run as committed, while it is open."""
        return self._ledger.published.get(run_id)

    def run_of(self, session: SessionKey) -> RunId | None:
        """The open run whose agent speaks under this session key."""
        return self._ledger.lanes.run_of(session)

    def inbox_of(self, session: SessionKey) -> SessionKey:
        """See ``Ledger.inbox_of``."""
        return self._ledger.inbox_of(session)

    def unsettled(self, requester: SessionKey) -> list[Run]:
        """The requester's runs without an outcome."""
        return self._ledger.unsettled(requester)

    def slots_by_lane(self) -> Mapping[LaneKey, int]:
        """Slots in use, per lane and depth; only those with any."""
        return self._ledger.lanes.held_by_lane()

    def queued_by_lane(self) -> Mapping[LaneKey, int]:
        """Runs that wait for a slot, per lane and depth; only those with any."""
        return self._ledger.lanes.queued_by_lane()

    # -- any run, from memory or the store -------------------------------------------------

    async def run(self, run_id: RunId) -> Run:
        """One run by id.

        Raises:
            NotFound: No such run.
            Elsewhere: It is open, and another node has it.
        """
        run = await self._ledger.newest(run_id)
        if run is None:
            run = await self._off_loop(lambda: self._store.run(run_id))
            await self._ledger.partitions.require_read(run)
        if run is None:
            raise NotFound(f"run {run_id} does not exist", hint="see: subagents list")
        return run

    async def partition_of(self, run_id: RunId) -> int | None:
        """See ``Partitions.partition_of_run``."""
        return await self._ledger.partitions.partition_of_run(run_id)

    async def resolve(
        self, selector: str, session: SessionKey, *, may_see: MaySee | None = None
    ) -> RunId:
        """The run meant by an id, a session key, ``last``, a label, a schedule or an id's prefix.

        A whole id means that run and no other, also when somebody took it for a label. A label
        means its newest run, and so does the name of a schedule whose runs have other labels.

        A label looks at the caller's own runs first, then at everybody's. ``last`` is the caller's
        own newest run and no other's: what is then done to it must not hit a stranger's.

        Args:
            selector: As it was given.
            session: Whose runs come first.
            may_see: What others have does not hide what passes this. When nothing passes, one of
                theirs is the answer, for the caller to be refused; None = everything passes.

        Raises:
            NotFound: Nothing fits.
            UsageError: A prefix fits several runs; the message lists them.
        """
        if selector in self._ledger.published:
            return RunId(selector)
        if selector.startswith("agent:"):
            return await self._run_of_session(SessionKey(selector))
        if selector.startswith("r-"):
            found = await self._off_loop(lambda: self._store.find(selector))
            if selector in found:
                return RunId(selector)
        if selector == LAST:
            return await self._last(session)
        named = await self._named(selector, session, may_see)
        if named is not None:
            return named
        by_prefix: Sequence[RunId] = ()
        typed = selector.removeprefix("r-")
        if len(typed) >= PREFIX_CHARS_MIN:
            by_prefix = await self._off_loop(lambda: self._store.find(f"r-{typed}"))
        if by_prefix and may_see is not None:
            readable = await self.these(by_prefix)
            fitting = [readable[run_id] for run_id in by_prefix if run_id in readable]
            by_prefix = [run.id for run in await _seen(fitting, may_see) or fitting[:1]]
        if len(by_prefix) > 1:
            raise UsageError(f'"{selector}" fits several runs: {", ".join(by_prefix)}')
        if not by_prefix:
            is_plan = await self._plan_named(selector, session) is not None
            other = f"; there is a plan of that name, plan:{selector}" if is_plan else ""
            raise NotFound(f'no run "{selector}"{other}', hint="see: subagents list")
        return by_prefix[0]

    async def resolve_plan(self, selector: str, session: SessionKey, *, sees_all: bool) -> str:
        """The id of a plan by its id, a unique prefix of it, its name or ``last``.

        Args:
            selector: A name means the newest plan of that name, the session's own before others;
                ``last`` the newest that this session asked for, never somebody else's.
            session: Who asks.
            sees_all: Whether it may name plans of other sessions.

        Raises:
            NotFound: There is none.
            UsageError: A prefix fits several plans; the message lists them.
        """
        own = await self._plan_named(selector, session)
        if own is None and sees_all and selector != LAST:
            own = await self._plan_named(selector, None)
        if own is None:
            raise NotFound(f'no plan "{selector}"', hint="see: subagents plan list")
        return own

    async def _plan_named(self, selector: str, requester: SessionKey | None) -> str | None:
        by_prefix: list[str] = []
        typed = selector if selector.startswith("r-") else f"r-{selector}"
        for offset in range(0, PLANS_SEARCHED_MAX, PLANS_PAGE):
            where = RunFilter(requester=requester, plans=True, archived=True, limit=PLANS_PAGE)
            page = await self.runs(replace(where, offset=offset))
            for run in page:
                name = None if run.resolved.step is None else run.resolved.step.name
                if selector in {LAST, run.id, name}:
                    return run.id
                if len(typed) - 2 >= PREFIX_CHARS_MIN and run.id.startswith(typed):
                    by_prefix.append(run.id)
            if len(page) < PLANS_PAGE:
                break
        if len(by_prefix) > 1:
            raise UsageError(f'"{selector}" fits several plans: {", ".join(by_prefix)}')
        return by_prefix[0] if by_prefix else None

    async def _named(
        self, selector: str, session: SessionKey, may_see: MaySee | None
    ) -> RunId | None:
        for where in (
            RunFilter(label=selector, archived=True),
            RunFilter(tags=(tag_of(selector),), archived=True),
        ):
            for requester in dict.fromkeys((session, None)):
                limit = 1 if requester is not None or may_see is None else SAME_LABEL_MAX
                found = await self.runs(replace(where, requester=requester, limit=limit))
                if found:
                    seen = found if limit == 1 else await _seen(found, may_see)
                    return (seen or found)[0].id
        return None

    async def _last(self, session: SessionKey) -> RunId:
        """The newest run that the session spawned.

        Raises:
            NotFound: There is none.
        """
        found = await self.runs(RunFilter(requester=session, limit=1, archived=True))
        if not found:
            raise NotFound(
                "this session has started no runs, so there is no last one",
                hint="name the run by its id or label, see: subagents list",
            )
        return found[0].id

    async def _run_of_session(self, key: SessionKey) -> RunId:
        """The run in whose child session, of whichever attempt, its agent speaks or spoke.

        Raises:
            NotFound: None of the newest ``SESSIONS_SEARCHED_MAX`` runs of that agent.
        """
        run_id = self._ledger.lanes.run_of(key)
        if run_id is not None and run_id in self._ledger.published:
            return run_id
        for offset in range(0, SESSIONS_SEARCHED_MAX, SESSIONS_PAGE):
            where = RunFilter(
                agent_id=agent_of(key), archived=True, limit=SESSIONS_PAGE, offset=offset
            )
            page = await self.runs(where)
            for run in page:
                if key == run.session.first_key or any(key == a.session.key for a in run.attempts):
                    return run.id
            if len(page) < SESSIONS_PAGE:
                break
        raise NotFound(
            f"none of the newest {SESSIONS_SEARCHED_MAX:,} runs of {agent_of(key)} has the session"
            f" {key}",
            hint="see: subagents list",
        )

    async def runs(self, where: RunFilter) -> tuple[Run, ...]:
        """Newest first."""
        return tuple(await self._off_loop(lambda: self._store.runs(where)))

    async def page(self, where: RunFilter, rank: Rank | None = None) -> RunsFound:
        """The runs of the filter's window, newest first, and how many there are in all.

        With a rank the window is of the newest ``COUNTED_MAX`` that fit, in its order.
        """
        if rank is None:
            return await self._off_loop(lambda: self._page(where))
        newest = replace(where, offset=0, limit=COUNTED_MAX)
        found = await self._off_loop(lambda: self._page(newest))
        # Sorting is stable: of equal ones the newest comes first.
        ranked = sorted(found.runs, key=lambda run: _known(rank(run)), reverse=True)
        end = where.offset + where.limit
        return found._replace(runs=tuple(ranked[where.offset : end]), end=end)

    def _page(self, where: RunFilter) -> RunsFound:
        found, end = self._store.runs(where), where.offset + where.limit
        # A page that is not full ends the list, so there is nothing to count. An empty one behind
        # an offset says nothing: the list may have ended long before.
        if len(found) < where.limit and (found or not where.offset):
            total = Count(where.offset + len(found))
        else:
            total = self._counted(where, max(COUNTED_MAX, end))
        hidden = Count(0)
        if not where.archived:
            others = replace(where, listed=False, archived=True)
            hidden = self._counted(others, COUNTED_MAX)
        return RunsFound(tuple(found), total, hidden, end)

    def _counted(self, where: RunFilter, most: int) -> Count:
        # One more than is shown tells whether there are more.
        number = self._store.count(where, most=most + 1)
        return Count(min(number, most), is_bound=number > most)

    async def journal(
        self, run_id: RunId, *, after_seq: int = 0, limit: int = 500
    ) -> tuple[JournalEntry, ...]:
        """A page of the run's events, in order."""
        return tuple(
            await self._off_loop(
                lambda: self._store.journal(run_id, after_seq=after_seq, limit=limit)
            )
        )

    async def tree(self, run_id: RunId, *, most: int | None = None) -> RunTree:
        """The run and all its descendants, those near the root first.

        Args:
            run_id: The root.
            most: About so many runs; of a node whose children would be more, ``left_out`` says
                how many it has. None = all.

        Raises:
            NotFound: No such run.
        """
        (tree,) = await self._grown([await self.run(run_id)], most)
        return tree

    async def _grown(self, roots: Sequence[Run], most: int | None) -> tuple[RunTree, ...]:
        """The runs with their descendants, at most so many in all; one query for each level."""
        children: dict[RunId, list[Run]] = {}
        level, seen = list(roots), len(roots)
        while level and (most is None or seen < most):
            shares = _shares(level, None if most is None else most - seen)
            wanted = {
                run.id: [child.run_id for child in run.children[: shares[run.id]]]
                for run in level
                if run.id in shares
            }
            found = await self.these([run_id for ids in wanted.values() for run_id in ids])
            children |= {
                parent: [found[run_id] for run_id in ids if run_id in found]
                for parent, ids in wanted.items()
            }
            level = [run for parent in wanted for run in children[parent]]
            seen += len(level)
        return tuple(_node(root, children) for root in roots)

    async def these(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Run]:
        """Those of these runs that can be read; from the store with one query."""
        published = self._ledger.published
        found = {run_id: published[run_id] for run_id in run_ids if run_id in published}
        missing = [run_id for run_id in run_ids if run_id not in found]
        if missing:
            stored = await self._off_loop(lambda: self._store.these(missing))
            found |= {run.id: run for run in stored}
        return found

    async def below(self, run_ids: Sequence[RunId], plans: Sequence[RunId] = ()) -> Descendants:
        """How many runs are below each, on all levels; as ``ports.Store.below`` has them.

        Those of no run are left out.
        """
        rows = await self._off_loop(lambda: self._store.below(run_ids, most=BELOW_MAX, plans=plans))
        open_runs = await self.these([run_id for row in rows for run_id in row.open])
        found: dict[RunId, list[tuple[Status | Run, int]]] = {}
        for row in rows:
            of_root = found.setdefault(row.root, [])
            if row.outcome is not None:
                of_root.append((row.outcome, row.number))
            of_root += ((open_runs[each], 1) for each in row.open if each in open_runs)
        return Descendants(found, is_bound=sum(row.number for row in rows) >= BELOW_MAX)

    async def set_aside(self) -> tuple[SetAside, ...]:
        """What is stored but damaged, and left out everywhere."""
        return tuple(await self._off_loop(self._store.set_aside))

    async def roots(self, where: RunFilter) -> Forest:
        """The trees of the runs of the filter's window, oldest first."""
        found = await self.page(where)
        oldest = found.runs if where.oldest_first else found.runs[::-1]
        return Forest(await self._grown(oldest, len(oldest) + TREE_NODES_MAX), found)

    async def inbox(
        self, session: SessionKey | None, *, unconsumed: bool = False, limit: int = 200
    ) -> tuple[InboxRow, ...]:
        """Messages without taking or offering any."""
        return tuple(
            await self._off_loop(
                lambda: self._store.inbox(session, unconsumed=unconsumed, limit=limit)
            )
        )

    async def unread_total(self) -> int:
        """Unread messages of all sessions."""
        return await self._off_loop(self._store.unread_total)

    async def attention(self, session: SessionKey | None = None) -> tuple[AttentionItem, ...]:
        """What needs a person: questions, blockers, deliveries given up, unread failures.

        What somebody dismissed is not among them, whether its requester has it or not.

        And runs at work with which something is wrong now, in the text of its alert: of a cluster,
        those that this node decides about.

        Raises:
            Elsewhere: The session is another node's.
        """
        if session is not None:
            await self._ledger.partitions.require_session(session)
        published = tuple(self._ledger.published.values())
        mine = [
            run
            for run in published
            # What a requester that ended was asked is for its nearest ancestor at work.
            if session is None or answering_inbox(self._ledger.live, run) == session
        ]
        others = await self._others_at_work() if session is None else ()
        open_requests = pending_requests((*mine, *others))
        items = [
            AttentionItem(
                kind=str(request.priority or "question"),
                run=run,
                text=request.question,
                since_ms=request.asked_at_ms,
                request=request,
            )
            for run, request in open_requests
        ]
        for run in mine:
            held = self._quarantine.get(run.id)
            if held is not None:
                text = f"{held.effect} keeps failing: {held.error}"
                items.append(
                    AttentionItem(kind="quarantined", run=run, text=text, since_ms=held.since_ms)
                )
        items += [
            AttentionItem(kind=each.kind, run=run, text=each.text, since_ms=each.since_ms)
            for run in mine
            for each in self._recorder.concerns(run)
        ]
        given_up = RunFilter(requester=session, phases=(Phase.COMPLETED_GIVEUP,), limit=100)
        items += [
            AttentionItem(
                kind="undelivered",
                run=run,
                text="delivery was given up; the result is kept",
                since_ms=run.times.phase_since_ms,
            )
            for run in await self.runs(given_up)
            if run.announcement_consumed_ms is None and run.verification.dismissed_at_ms is None
        ]
        items += await self._escalations(session)
        shown = {str(request.id) for _, request in open_requests}
        unread = await self.inbox(session, unconsumed=True, limit=500)
        runs = await self.these([row.message.run_id for row in unread])
        for row in unread:
            about = runs.get(row.message.run_id)
            is_shown = row.message.id in shown or row.message.id.endswith(ESCALATION_SUFFIX)
            if about is None or is_shown or about.verification.dismissed_at_ms is not None:
                continue
            if row.message.kind is MessageKind.BLOCKER:
                items.append(_unread(about, "blocker", row))
            elif row.message.kind is MessageKind.ANNOUNCEMENT:
                lapses = self._mailbox.leases.lapses(row.message.id)
                if about.phase in SETTLED and about.has_failed:
                    items.append(_unread(about, "failed", row))
                elif lapses >= UNREAD_LAPSES and about.phase is not Phase.COMPLETED_GIVEUP:
                    text = f"offered to {lapses} readers, none of which took it"
                    items.append(_unread(about, "unread", row, text=text))
        return tuple(items)

    async def _others_at_work(self) -> Sequence[Run]:
        """The newest runs whose workers may ask, and that other nodes decide about."""
        partitions = self._ledger.partitions
        if not partitions.is_shared:
            return ()
        where = RunFilter(phases=MAY_ASK, limit=OTHERS_LOOKED_AT)
        return await self._off_loop(
            lambda: [run for run in self._store.runs(where) if not partitions.has_run(run.id)]
        )

    async def _escalations(self, session: SessionKey | None) -> list[AttentionItem]:
        """Broken contracts that were escalated, until continued or dismissed, as a retry does.

        Whether the message was read does not matter: reading mends nothing.
        """
        blockers = await self._off_loop(
            lambda: self._store.blockers(session, limit=ESCALATIONS_LOOKED_AT)
        )
        rows = [row for row in blockers if row.message.id.endswith(ESCALATION_SUFFIX)]
        runs = await self.these([row.message.run_id for row in rows])
        return [
            replace(_unread(run, "blocker", row), is_escalation=True)
            for row in rows
            if (run := runs.get(row.message.run_id)) is not None
            and run.verification.dismissed_at_ms is None
            and run.session.continued_by is None
        ]


def _known(value: float | None) -> float:
    return -1 if value is None else value


async def _seen(found: Sequence[Run], may_see: MaySee | None) -> list[Run]:
    return [run for run in found if may_see is None or await may_see(run)]


def _unread(run: Run, kind: str, row: InboxRow, *, text: str | None = None) -> AttentionItem:
    text = row.message.text if text is None else text
    if kind == "failed" and run.outcome is not None:
        text = run.outcome.error or str(run.outcome.reason)
    return AttentionItem(
        kind=kind,
        run=run,
        text=text,
        since_ms=row.message.created_at_ms,
        message_id=None if row.consumed_at_ms is not None else row.message.id,
    )


def _shares(parents: Sequence[Run], room: int | None) -> Mapping[RunId, int]:
    """How many children of each parent are shown: the wide ones share what the others leave."""
    few = sorted((run for run in parents if run.children), key=lambda run: len(run.children))
    shares = {}
    for number, run in enumerate(few):
        wanted = len(run.children)
        shares[run.id] = wanted if room is None else min(wanted, room // (len(few) - number))
        room = None if room is None else room - shares[run.id]
    return shares


def _node(run: Run, children: dict[RunId, list[Run]]) -> RunTree:
    shown = tuple(_node(child, children) for child in children.get(run.id, ()))
    return RunTree(run=run, children=shown, left_out=len(run.children) - len(shown))
