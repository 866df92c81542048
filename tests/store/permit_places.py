"""Where several nodes settle: in memory, and in PostgreSQL. One suite works in both."""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from tests.store.postgres_server import PostgresPlace

from subagents.errors import Fenced
from subagents.ports import (
    Amount,
    CapKey,
    CapShare,
    CapWanted,
    Demand,
    LaneKey,
    LaneWanted,
    Permits,
    Settlement,
    SharedGate,
)
from subagents.store.postgres.postgres_migrations import scripts
from subagents.store.postgres.postgres_permits import PostgresPermits

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


class MemoryPlace:
    """The contract once more, in plain Python and without concurrency."""

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._alive: set[str] = set()
        self._owners: dict[int, tuple[str, int]] = {}
        self._counted: dict[int, tuple[str, int]] = {}
        self._lanes: dict[LaneKey, dict[str, _Row]] = {}
        self._caps: dict[CapKey, dict[str, tuple[CapWanted, Amount]]] = {}
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
        _, epoch = self._owners.get(partition, ("", 0))
        self._owners[partition] = (identity, epoch + 1)

    def end(self, identity: str) -> None:
        self._alive.discard(identity)

    def is_alive(self, identity: str) -> bool:
        return identity in self._alive

    def owner(self, partition: int) -> tuple[str, int] | None:
        """Who has the partition, and a number that grows with each claim."""
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
            if (owned := self.owner(partition)) is not None and owned[0] == me:
                self._counted[partition] = owned
        is_owing = any(
            counted[0] == me and self.owner(partition) != counted
            for partition, counted in self._counted.items()
        )
        unnamed = {
            lane: LaneWanted(0, 0, 0)
            for lane, rows in self._lanes.items()
            if me in rows and lane not in demand.lanes
        }
        lanes = {
            lane: self._settle_lane(me, lane, wanted, is_owing=is_owing)
            for lane, wanted in {**demand.lanes, **unnamed}.items()
        }
        caps = {
            key: self._settle_cap(me, key, wanted, is_owing=is_owing)
            for key, wanted in demand.caps.items()
        }
        counted = {identity for identity, _ in self._counted.values()}
        for rows in self._lanes.values():
            for identity in self._owing_nothing(rows, counted):
                del rows[identity]
        for shares in self._caps.values():
            for identity in self._owing_nothing(shares, counted):
                del shares[identity]
        for key, of_nodes in self._caps.items():
            if key not in demand.caps and not is_owing:
                of_nodes.pop(me, None)
        return Settlement(
            {lane: may for lane, may in lanes.items() if lane in demand.lanes},
            caps,
            self._settle_gates(demand),
        )

    def _owing_nothing(self, among: Iterable[str], counted: Collection[str]) -> list[str]:
        """Nodes that are over, and whose runs are all counted by others."""
        return [each for each in among if not self.is_alive(each) and each not in counted]

    def _settle_lane(self, me: str, lane: LaneKey, wanted: LaneWanted, *, is_owing: bool) -> int:
        rows = self._lanes.setdefault(lane, {})
        if me not in rows:
            if not wanted.most:
                return 0
            rows[me] = _Row(self._next())
        mine = rows[me]
        mine.most = wanted.most
        if is_owing:
            may, keeps = wanted.used, max(mine.held, wanted.used)
        else:
            others = sum(row.held for identity, row in rows.items() if identity != me)
            fair = self._fair(rows, me, wanted.limit)
            may = max(min(fair, wanted.limit - others), 0)
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

    def _settle_cap(self, me: str, key: CapKey, wanted: CapWanted, *, is_owing: bool) -> CapShare:
        of_nodes = self._caps.setdefault(key, {})
        others = [each for identity, each in of_nodes.items() if identity != me]
        gone = _plus(wanted.used, wanted.held)
        others_kept = _sum([kept for _, kept in others])
        others_used = _sum([each.used for each, _ in others])
        more = Amount() if is_owing else wanted.more
        tokens, usd = more
        if wanted.limit_tokens is not None:
            tokens = max(min(tokens, wanted.limit_tokens - others_kept.tokens - gone.tokens), 0)
        if wanted.limit_usd is not None:
            usd = max(min(usd, wanted.limit_usd - others_kept.usd - gone.usd), 0)
        share = _plus(gone, Amount(tokens, usd))
        kept, noted = share, wanted
        if is_owing and me in of_nodes:
            before, kept_before = of_nodes[me]
            kept = _larger(kept_before, share)
            noted = wanted._replace(
                used=_larger(before.used, wanted.used), held=_larger(before.held, wanted.held)
            )
        of_nodes[me] = (noted, kept)
        return CapShare(
            share,
            others_used,
            Amount(others_kept.tokens - others_used.tokens, others_kept.usd - others_used.usd),
            sum(each.cost_unknown for each, _ in others),
        )

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


def _sum(amounts: list[Amount]) -> Amount:
    return Amount(sum(each.tokens for each in amounts), sum(each.usd for each in amounts))


def _larger(one: Amount, other: Amount) -> Amount:
    return Amount(max(one.tokens, other.tokens), max(one.usd, other.usd))


class PostgresPermitPlace:
    """The real one, in a schema with no more than it reads of nodes and partitions."""

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._made: list[Permits] = []
        (script,) = [script for _, name, script in scripts() if name == "permits"]
        schema = place.schema
        place.server.execute_script(
            f"CREATE SCHEMA {schema};"
            f"CREATE TABLE {schema}.node (identity text PRIMARY KEY, is_over smallint NOT NULL);"
            f"CREATE TABLE {schema}.part (part smallint PRIMARY KEY, owner text, epoch bigint);"
            + script.replace("{schema}", schema)
        )

    def join(self, identity: str) -> Permits:
        self._place.execute("INSERT INTO node VALUES (?, 0)", identity)
        made = PostgresPermits(self._place.url, lambda: identity)
        self._made.append(made)
        return made

    def give(self, partition: int, identity: str) -> None:
        self._place.execute(
            "INSERT INTO part VALUES (?, ?, 1)"
            " ON CONFLICT (part) DO UPDATE SET owner = excluded.owner, epoch = part.epoch + 1",
            *(partition, identity),
        )

    def end(self, identity: str) -> None:
        self._place.execute("UPDATE node SET is_over = 1 WHERE identity = ?", identity)

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
