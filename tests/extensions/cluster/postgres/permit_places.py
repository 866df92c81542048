"""Where several nodes settle: in memory, and in PostgreSQL. One suite works in both."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Protocol

from tests.extensions.cluster.postgres.postgres_server import PostgresPlace

from subagents.errors import Fenced
from subagents.extensions.cluster.node_permits import Demand, LaneWanted, Permits, Settlement
from subagents.extensions.cluster.postgres.postgres_migrations import scripts
from subagents.extensions.cluster.postgres.postgres_permits import PostgresPermits
from subagents.ports import Amount, CapKey, CapShare, CapWanted, LaneKey, SharedGate

FORGET_MS = 600_000


class PermitPlace(Protocol):
    """Nodes and partitions, moved by hand."""

    def join(self, identity: str) -> Permits:
        """A node that is alive."""
        ...

    def give(self, partition: int, identity: str) -> None:
        """The partition is the node's now."""
        ...

    def end(self, identity: str) -> None:
        """The node is over; what it had is still its own."""
        ...

    def held(self, lane: LaneKey) -> dict[str, int]:
        """How many slots are given to whom."""
        ...

    def pass_ms(self, duration_ms: int) -> None:
        """Let so much time go by for gates."""
        ...

    def close(self) -> None: ...


class _MemoryNode:
    def __init__(self, place: "MemoryPlace", identity: str) -> None:
        self._place = place
        self._identity = identity

    def settle(self, demand: Demand) -> Settlement:
        return self._place.settle(self._identity, demand)

    def close(self) -> None:
        """Nothing is open."""


class _Row:
    def __init__(self, turn: int) -> None:
        self.held = self.most = 0
        self.turn = turn


class _Share(NamedTuple):
    used: Amount
    kept: Amount
    cost_unknown: int


class MemoryPlace:
    """The contract once more, in plain Python and without concurrency."""

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._alive: set[str] = set()
        self._owners: dict[int, str] = {}
        self._counted: dict[int, str] = {}
        self._lanes: dict[LaneKey, dict[str, _Row]] = {}
        self._caps: dict[CapKey, dict[str, _Share]] = {}
        self._gates: dict[str, tuple[SharedGate, int]] = {}
        self._turn = 0
        self._passed_ms = 0
        self._now_ms = now_ms or (lambda: self._passed_ms)
        self.settled = 0
        """So many demands were answered."""

    def join(self, identity: str) -> Permits:
        self._alive.add(identity)
        return _MemoryNode(self, identity)

    def give(self, partition: int, identity: str) -> None:
        self._owners[partition] = identity

    def end(self, identity: str) -> None:
        self._alive.discard(identity)

    def is_alive(self, identity: str) -> bool:
        return identity in self._alive

    def owner(self, partition: int) -> str | None:
        """Who has the partition."""
        return self._owners.get(partition)

    def held(self, lane: LaneKey) -> dict[str, int]:
        rows = self._lanes.get(lane, {})
        return {identity: row.held for identity, row in rows.items() if row.held}

    def pass_ms(self, duration_ms: int) -> None:
        self._passed_ms += duration_ms

    def close(self) -> None:
        """Nothing is open."""

    def _next(self) -> int:
        self._turn += 1
        return self._turn

    def settle(self, me: str, demand: Demand) -> Settlement:
        if not self.is_alive(me):
            raise Fenced(f"the node {me} is over")
        self.settled += 1
        for partition in demand.partitions:
            if self.owner(partition) == me:
                self._counted[partition] = me
        unnamed = {
            lane: LaneWanted(0, 0, 0)
            for lane, rows in self._lanes.items()
            if me in rows and lane not in demand.lanes
        }
        lanes = {
            lane: self._settle_lane(me, lane, wanted)
            for lane, wanted in {**demand.lanes, **unnamed}.items()
        }
        caps = {key: self._settle_cap(me, key, wanted) for key, wanted in demand.caps.items()}
        counted = set(self._counted.values())
        for rows in self._lanes.values():
            for identity in self._owing_nothing(rows, counted):
                del rows[identity]
        return Settlement(
            {lane: may for lane, may in lanes.items() if lane in demand.lanes},
            caps,
            self._settle_gates(demand),
            frozenset(part for part in demand.handed if self._counted.get(part) == me),
        )

    def _owing_nothing(self, among: Iterable[str], counted: Collection[str]) -> list[str]:
        """Nodes that are over, and whose runs are all counted by others."""
        return [each for each in among if not self.is_alive(each) and each not in counted]

    def _settle_lane(self, me: str, lane: LaneKey, wanted: LaneWanted) -> int:
        rows = self._lanes.setdefault(lane, {})
        if me not in rows:
            if not wanted.most:
                return 0
            rows[me] = _Row(self._next())
        mine = rows[me]
        mine.most = wanted.most
        others = sum(row.held for identity, row in rows.items() if identity != me)
        may = max(min(self._fair(rows, me, wanted.limit), wanted.limit - others), 0)
        keeps = max(may, wanted.used)
        if keeps != mine.held:
            mine.turn = self._next()
        mine.held = keeps
        if not keeps and not wanted.most:
            del rows[me]
        return may

    def _fair(self, rows: dict[str, _Row], me: str, limit: int) -> int:
        stuck = sum(row.held for identity, row in rows.items() if not self.is_alive(identity))
        rest = max(limit - stuck, 0)
        asking = [(i, row) for i, row in rows.items() if row.most and self.is_alive(i)]
        is_short = rest < len(asking)

        def order(each: tuple[str, _Row]) -> tuple[int, int, int]:
            row = each[1]
            first = -row.held if is_short else min(row.most, limit)
            return first, row.held, -row.turn if is_short and not row.held else row.turn

        for place, (identity, row) in enumerate(sorted(asking, key=order)):
            given = min(row.most, limit, rest // (len(asking) - place))
            if identity == me:
                return given
            rest -= given
        return 0

    def _settle_cap(self, me: str, key: CapKey, wanted: CapWanted) -> CapShare:
        if key not in self._caps:
            self._caps[key] = {"": _Share(wanted.before, wanted.before, wanted.before_unknown)}
        shares = self._caps[key]
        for identity in [each for each in shares if each and not self.is_alive(each)]:
            shares[""] = _joined([shares[""], shares.pop(identity)])
        others = _joined([each for identity, each in shares.items() if identity != me])
        gone = _plus(wanted.used, wanted.held)
        tokens, usd = wanted.more
        if wanted.limit_tokens is not None:
            tokens = max(min(tokens, wanted.limit_tokens - others.kept.tokens - gone.tokens), 0)
        if wanted.limit_usd is not None:
            usd = max(min(usd, wanted.limit_usd - others.kept.usd - gone.usd), 0)
        kept = _plus(gone, Amount(tokens, usd))
        shares[me] = _Share(wanted.used, kept, wanted.cost_unknown)
        held = Amount(others.kept.tokens - others.used.tokens, others.kept.usd - others.used.usd)
        return CapShare(kept, others.used, held, others.cost_unknown)

    def _settle_gates(self, demand: Demand) -> list[SharedGate]:
        now = self._now_ms()
        for gate in demand.closed:
            until_ms, waits, status = now + gate.left_ms, gate.waits, gate.status
            if (found := self._gates.get(gate.key)) is not None:
                known, known_until_ms = found
                until_ms, waits = max(until_ms, known_until_ms), max(waits, known.waits)
                status = status or known.status
            changed = gate._replace(waits=waits, status=status, number=self._next())
            self._gates[gate.key] = (changed, until_ms)
        for key, number in demand.opened.items():
            if key in self._gates and self._gates[key][0].number <= number:
                del self._gates[key]
        for key, (_, until_ms) in tuple(self._gates.items()):
            if until_ms < now - FORGET_MS:
                del self._gates[key]
        return [gate._replace(left_ms=until_ms - now) for gate, until_ms in self._gates.values()]


def _plus(one: Amount, other: Amount) -> Amount:
    return Amount(one.tokens + other.tokens, one.usd + other.usd)


def _joined(shares: list[_Share]) -> _Share:
    found = _Share(Amount(), Amount(), 0)
    for each in shares:
        used, kept = _plus(found.used, each.used), _plus(found.kept, each.kept)
        found = _Share(used, kept, found.cost_unknown + each.cost_unknown)
    return found


class PostgresPermitPlace:
    """The real one, in a schema with no more than it reads of nodes and partitions."""

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._made: list[Permits] = []
        (script,) = [script for _, name, script in scripts() if name == "permits"]
        schema = place.schema
        place.server.execute_script(
            f"CREATE SCHEMA {schema};"
            f"CREATE TABLE {schema}.node (identity text PRIMARY KEY, is_over boolean NOT NULL);"
            f"CREATE TABLE {schema}.part (part smallint PRIMARY KEY, owner text);"
            + script.replace("{schema}", schema)
        )

    def join(self, identity: str) -> Permits:
        self._place.execute("INSERT INTO node VALUES (?, false)", identity)
        made = PostgresPermits(self._place.url, lambda: identity)
        self._made.append(made)
        return made

    def give(self, partition: int, identity: str) -> None:
        self._place.execute(
            "INSERT INTO part VALUES (?, ?)"
            " ON CONFLICT (part) DO UPDATE SET owner = excluded.owner",
            *(partition, identity),
        )

    def end(self, identity: str) -> None:
        self._place.execute("UPDATE node SET is_over = true WHERE identity = ?", identity)

    def held(self, lane: LaneKey) -> dict[str, int]:
        found = self._place.asked(
            "SELECT identity, held FROM permit WHERE lane = ? AND depth = ? AND held > 0", *lane
        )
        return {str(identity): int(str(held)) for identity, held in found}

    def pass_ms(self, duration_ms: int) -> None:
        self._place.execute(
            "UPDATE gate SET until = until - ? * interval '1 millisecond'", duration_ms
        )

    def close(self) -> None:
        for each in self._made:
            each.close()
