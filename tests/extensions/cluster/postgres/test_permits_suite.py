"""What is given out among nodes is never more than there is, and comes back from whoever ends."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.extensions.cluster.postgres.permit_places import (
    MemoryPlace,
    PermitPlace,
    PostgresPermitPlace,
)
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer

from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.node_permits import Demand, LaneWanted, Permits, Settlement
from subagents.extensions.cluster.postgres.postgres_permits import PostgresPermits
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore
from subagents.extensions.cluster.shared_store import Member
from subagents.ports import Amount, CapKey, CapWanted, LaneKey, SharedGate

LANE: LaneKey = ("agents", 1)
DAILY = CapKey("budgets.daily", "2026-11-26")
LASTING = CapKey("budgets.tags.x", "")


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.tier("check"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PermitPlace]:
    if request.param == "memory":
        made: PermitPlace = MemoryPlace()
    else:
        made = PostgresPermitPlace(PostgresPlace(request.getfixturevalue("postgres"), tmp_path))
    yield made
    made.close()


def asked(
    node: Permits, limit: int, used: int, most: int, *, of: tuple[int, ...] = (), at: LaneKey = LANE
) -> int:
    return node.settle(Demand(of, {at: LaneWanted(limit, used, most)})).lanes[at]


# -- lanes -------------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:lanes")
def test_a_node_alone_has_what_it_wants_up_to_the_limit(place: PermitPlace) -> None:
    node = place.join("a")

    assert asked(node, 4, 0, 3) == 3
    assert asked(node, 4, 3, 100) == 4
    assert place.held(LANE) == {"a": 4}


@pytest.mark.requirement("cluster:lanes")
def test_what_is_neither_used_nor_wanted_is_another_ones_at_once(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    assert asked(a, 4, 0, 4) == 4
    assert asked(b, 4, 0, 4) == 0

    assert asked(a, 4, 1, 1) == 1
    assert asked(b, 4, 0, 4) == 3

    a.settle(Demand(()))
    assert asked(b, 4, 3, 4) == 4
    assert place.held(LANE) == {"b": 4}


@pytest.mark.requirement("cluster:lanes")
def test_whoever_has_more_than_its_part_begins_none_until_others_have_theirs(
    place: PermitPlace,
) -> None:
    a, b = place.join("a"), place.join("b")
    assert asked(a, 4, 0, 50) == 4
    assert asked(b, 4, 0, 50) == 0

    assert asked(a, 4, 4, 50) == 2, "its runs go on, but who ends is not replaced"
    assert place.held(LANE) == {"a": 4}
    assert asked(a, 4, 3, 49) == 2
    assert asked(b, 4, 0, 50) == 1
    assert asked(a, 4, 2, 48) == 2
    assert asked(b, 4, 1, 50) == 2


@pytest.mark.requirement("cluster:lanes")
def test_a_part_that_one_has_no_use_for_goes_to_who_wants_it(place: PermitPlace) -> None:
    nodes = [place.join(name) for name in "abc"]
    for node, most in zip(nodes, (1, 20, 20), strict=True):
        asked(node, 9, 0, most)
    used = [0, 0, 0]
    for _ in range(10):
        for at, most in enumerate((1, 20, 20)):
            may = asked(nodes[at], 9, used[at], most)
            used[at] = may if may > used[at] else max(used[at] - 1, may)

    assert used == [1, 4, 4]


@pytest.mark.requirement("cluster:lanes")
def test_one_slot_goes_round_among_all_that_wait(place: PermitPlace) -> None:
    nodes = {name: place.join(name) for name in "abc"}
    got = []
    for node in nodes.values():
        asked(node, 1, 0, 50)
    holder = next(name for name in nodes if place.held(LANE).get(name))
    for _ in range(6):
        got.append(holder)
        asked(nodes[holder], 1, 1, 50)
        waiting = [node for name, node in nodes.items() if name != holder]
        assert [asked(node, 1, 0, 50) for node in waiting] == [0, 0]
        asked(nodes[holder], 1, 0, 50)  # its run ended
        holder = next(name for name in nodes if asked(nodes[name], 1, 0, 50))

    assert got == got[:3] * 2
    assert sorted(got[:3]) == ["a", "b", "c"]


@pytest.mark.requirement("cluster:lanes")
def test_a_run_with_fewer_slots_begins_only_where_that_few_are_in_use(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    assert asked(a, 10, 0, 5) == 5

    assert asked(b, 5, 0, 1) == 0
    assert asked(b, 6, 0, 1) == 1


@pytest.mark.requirement("cluster:lanes")
def test_lanes_and_depths_are_counted_apart(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    assert asked(a, 1, 0, 1) == 1

    assert asked(b, 1, 0, 1, at=("agents", 2)) == 1
    assert asked(b, 1, 0, 1, at=("other", 1)) == 1


@pytest.mark.requirement("cluster:lanes", "cluster:takeover")
def test_slots_of_a_node_that_is_over_are_free_once_its_runs_are_counted_by_others(
    place: PermitPlace,
) -> None:
    a, b, c = (place.join(name) for name in "abc")
    for part in (1, 2):
        place.give(part, "a")
    place.give(3, "b")
    assert asked(a, 4, 0, 4, of=(1, 2)) == 4
    assert asked(b, 4, 0, 4, of=(3,)) == 0

    place.end("a")
    assert asked(b, 4, 0, 4, of=(3,)) == 0
    place.give(1, "b")
    place.give(2, "c")
    assert asked(b, 4, 0, 4, of=(3,)) == 0, "claimed, and not loaded"
    assert asked(b, 4, 1, 4, of=(1, 3)) == 0, "nobody says yet what became of partition 2"
    assert place.held(LANE) == {"a": 4, "b": 1}
    asked(c, 4, 1, 1, of=(2,))
    assert place.held(LANE) == {"b": 1, "c": 1}

    assert asked(b, 4, 1, 4, of=(1, 3)) == 3


@pytest.mark.requirement("cluster:lanes", "cluster:drain")
def test_slots_of_runs_that_were_handed_over_are_counted_until_their_new_owner_does(
    place: PermitPlace,
) -> None:
    a, b = place.join("a"), place.join("b")
    place.give(1, "a")
    assert asked(a, 4, 3, 3, of=(1,)) == 3
    place.give(1, "b")

    def handed() -> Settlement:
        return a.settle(Demand((), {LANE: LaneWanted(4, 3, 3)}, handed=(1, 2)))

    assert handed().handed == {1}
    assert asked(b, 4, 0, 4) == 1, "claimed, and not loaded"
    asked(b, 4, 3, 4, of=(1,))
    assert handed().handed == frozenset()
    a.settle(Demand(()))
    assert asked(b, 4, 3, 4, of=(1,)) == 4


@pytest.mark.requirement("cluster:lanes", "cluster:fence")
def test_a_node_that_is_over_is_told_so(place: PermitPlace) -> None:
    node = place.join("a")
    place.end("a")

    with pytest.raises(Fenced):
        node.settle(Demand(()))


# -- gates -------------------------------------------------------------------------------------


def gate(left_ms: int, **more: object) -> SharedGate:
    return SharedGate("anthropic/k", "anthropic", left_ms, **more)  # type: ignore[arg-type]


def seen(node: Permits) -> list[SharedGate]:
    return list(node.settle(Demand(())).gates)


@pytest.mark.requirement("cluster:provider-limits")
def test_a_gate_that_closed_on_one_node_is_seen_by_all_as_a_duration(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    a.settle(Demand((), closed=[gate(60_000, status=429, waits=2)]))

    (found,) = seen(b)
    assert 50_000 < found.left_ms <= 60_000
    assert (found.key, found.provider) == ("anthropic/k", "anthropic")
    assert (found.status, found.waits) == (429, 2)

    place.pass_ms(70_000)
    (found,) = seen(b)
    assert -20_000 < found.left_ms <= -10_000


@pytest.mark.requirement("cluster:provider-limits")
def test_a_gate_only_gets_more_time(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    a.settle(Demand((), closed=[gate(60_000, status=429, waits=2)]))
    b.settle(Demand((), closed=[gate(15_000, waits=1)]))

    (found,) = seen(a)
    assert found.left_ms > 50_000
    assert (found.status, found.waits) == (429, 2)


@pytest.mark.requirement("cluster:provider-limits")
def test_who_got_through_opens_it_for_all_unless_it_closed_again_since(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    a.settle(Demand((), closed=[gate(1_000)]))
    (known,) = seen(b)
    a.settle(Demand((), closed=[gate(30_000)]))

    b.settle(Demand((), opened={known.key: known.number}))
    (again,) = seen(b)
    b.settle(Demand((), opened={again.key: again.number}))
    assert seen(a) == []


@pytest.mark.requirement("cluster:provider-limits")
def test_a_gate_that_nobody_went_through_is_forgotten(place: PermitPlace) -> None:
    node = place.join("a")
    node.settle(Demand((), closed=[gate(1_000)]))

    place.pass_ms(700_000)
    assert seen(node) == []


# -- caps --------------------------------------------------------------------------------------


def cap(
    used: int = 0, held: int = 0, more: int = 0, *, limit: int | None = 100, usd: float = 0
) -> CapWanted:
    most_usd = None if usd == 0 else 1.0
    amounts = (Amount(used, usd), Amount(held), Amount(more, 0.5 if usd else 0))
    return CapWanted(limit, most_usd, *amounts)


def told(node: Permits, wanted: CapWanted, key: CapKey = DAILY, of: tuple[int, ...] = ()) -> object:
    share = node.settle(Demand(of, caps={key: wanted})).caps[key]
    return share.kept.tokens, share.others_used.tokens, share.others_held.tokens


@pytest.mark.requirement("cluster:caps")
def test_what_a_request_may_use_is_kept_for_it_before_it_starts(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")

    assert told(a, cap(more=60)) == (60, 0, 0)
    assert told(b, cap(more=60)) == (40, 0, 60)
    assert told(a, cap(held=60)) == (60, 0, 40)
    assert told(a, cap(used=20)) == (20, 0, 40)
    assert told(b, cap(held=40, more=60)) == (80, 20, 0)


@pytest.mark.requirement("cluster:caps")
def test_what_was_used_beyond_the_limit_leaves_nothing_and_is_told(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    told(a, cap(used=130))

    assert told(b, cap(used=5, more=10)) == (5, 130, 0)


@pytest.mark.requirement("cluster:caps")
def test_a_cap_on_cost_is_shared_as_one_on_tokens(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    a.settle(Demand((), caps={DAILY: cap(limit=None, usd=0.75)}))

    share = b.settle(Demand((), caps={DAILY: cap(more=10, limit=None, usd=0.1)})).caps[DAILY]
    assert share.others_used.usd == 0.75
    # 0.75 used and 0.25 kept of 1.00: a tenth is used here, and only 0.05 more is kept free.
    assert share.kept.tokens == 10
    assert share.kept.usd == pytest.approx(0.1)


@pytest.mark.requirement("cluster:caps")
def test_days_and_caps_are_counted_apart(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    told(a, cap(used=90))

    assert told(b, cap(more=60), LASTING) == (60, 0, 0)
    assert told(b, cap(more=60), CapKey(DAILY.key, "2026-11-27")) == (60, 0, 0)


@pytest.mark.requirement("cluster:caps", "cluster:takeover")
def test_what_a_node_that_is_over_used_and_kept_stays_used_and_kept(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    told(a, cap(used=30, more=50))

    place.end("a")
    assert told(b, cap(more=60)) == (20, 30, 50)
    # Its request was answered on the node that took its run over: 45 of the 50 were used.
    assert told(b, cap(used=45, held=-50, more=60)) == (20, 30, 50)
    c = place.join("c")
    assert told(c, cap(more=60)) == (0, 75, 25)
    told(b, cap(used=45, held=-50))
    assert told(c, cap(more=60)) == (25, 75, 0)


@pytest.mark.requirement("cluster:caps")
def test_what_was_used_before_anybody_counted_counts_once(place: PermitPlace) -> None:
    a, b = place.join("a"), place.join("b")
    before = cap()._replace(before=Amount(40), before_unknown=2)

    share = a.settle(Demand((), caps={DAILY: before})).caps[DAILY]
    assert (share.others_used.tokens, share.others_cost_unknown) == (40, 2)
    assert told(b, before._replace(more=Amount(90))) == (60, 40, 0)
    place.end("a")
    place.end("b")
    c = place.join("c")
    assert told(c, before._replace(used=Amount(5), more=Amount(90))) == (5, 40, 60)


@pytest.mark.requirement("cluster:caps")
def test_what_was_used_days_ago_is_forgotten_and_yesterday_is_not(place: PermitPlace) -> None:
    node = place.join("a")
    for day in (25, 26, 27):
        told(node, cap(used=day), CapKey(DAILY.key, f"2026-11-{day}"))

    other = place.join("b")
    assert told(other, cap(), CapKey(DAILY.key, "2026-11-26")) == (0, 26, 0)


# -- any order of things -----------------------------------------------------------------------

PARTS = 6


class Fleet:
    """Nodes with runs: each begins only what it was given, and counts what it loaded."""

    def __init__(self, place: PermitPlace, limit: int) -> None:
        self.place, self.limit = place, limit
        self.nodes: dict[str, Permits] = {}
        self.queued: dict[str, int] = {}
        self.may: dict[str, int] = {}
        self.loaded: dict[str, set[int]] = {}
        self.handed: dict[str, dict[int, int]] = {}
        """Runs that were at work in partitions which a node gave back, and that it counts still."""
        self.running = dict.fromkeys(range(PARTS), 0)
        """Of each partition: they go on whoever owns it."""
        self.owners: dict[int, str] = {}
        self.joined = 0
        self.served: set[str] = set()

    def join(self) -> str:
        name = f"n{self.joined}"
        self.joined += 1
        self.nodes[name] = self.place.join(name)
        self.queued[name] = self.may[name] = 0
        self.loaded[name], self.handed[name] = set(), {}
        return name

    def used(self, name: str) -> int:
        handed = sum(self.handed[name].values())
        return handed + sum(self.running[part] for part in self.loaded[name])

    def settle(self, name: str) -> None:
        used = self.used(name)
        wanted = LaneWanted(self.limit, used, used + self.queued[name])
        handed = self.handed[name]
        demand = Demand(
            self.loaded[name], {LANE: wanted} if wanted.most else {}, handed=tuple(handed)
        )
        found = self.nodes[name].settle(demand)
        for part in handed.keys() - found.handed:
            del handed[part]
        self.may[name] = found.lanes.get(LANE, 0)
        self.begin(name)

    def begin(self, name: str) -> None:
        for part in sorted(self.loaded[name]):
            while self.queued[name] and self.used(name) < self.may[name]:
                self.queued[name] -= 1
                self.running[part] += 1
                self.served.add(name)
        assert sum(self.running.values()) <= self.limit, "more runs than slots"

    def finish(self, part: int) -> None:
        self.running[part] = max(self.running[part] - 1, 0)
        if (owner := self.owners.get(part)) is not None and part in self.loaded.get(owner, ()):
            self.begin(owner)

    def claim(self, part: int, name: str) -> None:
        before = self.owners.get(part)
        if before in self.nodes and before is not None:
            if before == name:
                return
            if part in self.loaded[before]:
                self.loaded[before].discard(part)
                self.handed[before][part] = self.running[part]
            self.may[before] = 0
        self.owners[part] = name
        self.place.give(part, name)

    def load(self, part: int) -> None:
        owner = self.owners.get(part)
        if owner in self.nodes and owner is not None and part not in self.loaded[owner]:
            self.loaded[owner].add(part)
            self.handed[owner].pop(part, None)
            self.may[owner] = 0  # nothing begins in what nobody was told of

    def end(self, name: str) -> None:
        for each in (self.nodes, self.loaded, self.handed, self.may, self.queued):
            del each[name]
        self.place.end(name)

    def calm_down(self) -> None:
        """Everybody lives on, and runs end: nobody waits for ever, and all comes back."""
        survivor = next(iter(self.nodes), None) or self.join()
        for part in range(PARTS):
            if self.owners.get(part) not in self.nodes:
                self.claim(part, survivor)
            self.load(part)
        self.served = set()
        waiting = {name for name in self.nodes if self.loaded[name]}
        for name in waiting:
            self.queued[name] = 10
        for _ in range(8 * (len(waiting) + self.limit)):
            for name in self.nodes:
                self.settle(name)
            if self.served >= waiting:
                break
            for part in range(PARTS):
                self.finish(part)
        assert self.served >= waiting, "one waits for ever"
        for part in range(PARTS):
            self.running[part] = 0
        for _ in range(2):
            for name in self.nodes:
                self.queued[name] = 0
                self.settle(name)
        assert self.place.held(LANE) == {}, "slots leaked"


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["queue", "settle", "settle", "finish", "claim", "load", "end", "join"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=60,
)


def play(place: PermitPlace, limit: int, steps: list[Step]) -> None:
    fleet = Fleet(place, limit)
    for part in range(3):
        name = fleet.join()
        fleet.claim(part, name)
        fleet.load(part)
    for kind, at, much in steps:
        names = sorted(fleet.nodes)
        chosen = names[at % len(names)] if names else None
        if kind == "finish":
            fleet.finish(at)
        elif kind == "load":
            fleet.load(at)
        elif kind == "join" and len(fleet.nodes) < 5:
            fleet.join()
        elif chosen is None:
            continue
        elif kind == "queue":
            fleet.queued[chosen] += much
        elif kind == "settle":
            fleet.settle(chosen)
        elif kind == "claim":
            fleet.claim(much, chosen)
        elif kind == "end":
            fleet.end(chosen)
    fleet.calm_down()


@pytest.mark.requirement("cluster:lanes", "cluster:takeover")
@given(limit=st.integers(1, 7), steps=STEPS)
@settings(max_examples=400, deadline=None)
def test_no_lane_is_ever_overfull_none_waits_for_ever_and_no_slot_leaks(
    limit: int, steps: list[Step]
) -> None:
    play(MemoryPlace(), limit, steps)


@pytest.mark.requirement("cluster:lanes", "cluster:takeover")
@given(limit=st.integers(1, 7), steps=STEPS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_same_holds_in_a_real_server(
    postgres: PostgresServer, tmp_path: Path, limit: int, steps: list[Step]
) -> None:
    place = PostgresPermitPlace(PostgresPlace(postgres, tmp_path))
    try:
        play(place, limit, steps)
    finally:
        place.close()


@pytest.mark.requirement("cluster:lanes")
def test_nodes_that_ask_at_the_same_moment_never_get_too_much(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    place = PostgresPermitPlace(PostgresPlace(postgres, tmp_path))
    limit, using, most_used, begun = 5, 0, 0, 0
    counting = threading.Lock()
    errors: list[BaseException] = []

    def node(permits: Permits, rounds: int) -> None:
        nonlocal using, most_used, begun
        used = 0
        for number in range(rounds):
            demand = Demand((), {LANE: LaneWanted(limit, used, used + 3)})
            try:
                may = permits.settle(demand).lanes[LANE]
            except StoreUnavailable:
                continue  # it waited too long for the others
            with counting:
                started = max(may - used, 0)
                used, using, begun = used + started, using + started, begun + started
                most_used = max(most_used, using)
                if number % 2:
                    using -= used
                    used = 0
        with counting:
            using -= used

    def watched(permits: Permits) -> None:
        try:
            node(permits, 60)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=watched, args=(place.join(name),)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    place.close()

    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    assert begun > 100
    assert most_used <= limit


@pytest.mark.requirement("cluster:lanes", "cluster:takeover")
def test_nodes_of_a_real_store_settle_by_its_nodes_and_partitions(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = PostgresPlace(postgres, tmp_path).url
    stores = [
        PostgresStore(url, tmp_path / name, member=Member(name, None, (), None, 6.0))
        for name in ("a", "b")
    ]
    permits: list[PostgresPermits] = []

    def of(store: PostgresStore) -> PostgresPermits:
        permits.append(PostgresPermits(url, lambda: store.identity))
        return permits[-1]

    try:
        for store in stores:
            store.open("test")
            of(store)
        a, b = permits
        stores[0].claim([1, 2])
        assert asked(a, 3, 0, 3, of=(1, 2)) == 3
        assert asked(b, 3, 0, 3) == 0

        stores[0].close()
        again = PostgresStore(url, tmp_path / "a", member=Member("a", None, (), None, 6.0))
        stores.append(again)
        again.open("test")
        again.claim([1, 2])
        with pytest.raises(Fenced):
            a.settle(Demand(()))
        assert asked(b, 3, 0, 3) == 0
        assert asked(of(again), 3, 2, 2, of=(1, 2)) in {0, 1, 2}
        assert asked(b, 3, 0, 3) == 1
    finally:
        for made in permits:
            made.close()
        for store in stores:
            store.close()
