"""Lists of other runs: as plain lists would be, but found by id, counted and summed up."""

import math
from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.call_counts import counting_calls

from subagents.domain.run import linked_runs
from subagents.domain.run.linked_runs import CHUNK, Child, Children, Dependencies, Dependency
from subagents.domain.run.outcome import OK, Outcome
from subagents.domain.run.run import Waiting
from subagents.domain.run.usage import Committed, Spent
from subagents.domain.run.values import RunId

SIZES: Final = st.sampled_from([0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])


def run_id(number: int) -> RunId:
    return RunId(f"r-{number}")


def a_child(number: int) -> Child:
    return Child(run_id=run_id(number), label=f"c{number}")


def some(number: int) -> Children:
    return Children(map(a_child, range(number)))


def used(cost_usd: float | None, tokens: int | None = None, runs: int = 1) -> Spent:
    return Spent(tokens_in=tokens, cost_usd=cost_usd, runs=runs)


Change = Callable[[Children, int], Children]
CHANGES: Final[tuple[Change, ...]] = (
    lambda found, _: found.added(a_child(len(found))),
    lambda found, at: found.settled(run_id(at), OK, "done"),
    lambda found, at: found.told((run_id(at),)),
    lambda found, at: found.returned(run_id(at), (1, 1)),
    lambda found, at: found.reported(
        run_id(at), used(at / 7, at), Committed(tokens=at, cost_usd=at / 3, runs=at)
    ),
)


@pytest.mark.requirement("children:same-as-a-list")
@given(SIZES, st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 2 * CHUNK + 5))))
def test_what_was_counted_along_the_way_is_what_counting_anew_finds(
    size: int, changes: list[tuple[Change, int]]
) -> None:
    found = some(size)
    for change, at in changes:
        found = change(found, at)

    anew = Children(list(found))

    assert found == anew
    assert (found.active, found.untold_number) == (anew.active, anew.untold_number)
    assert found.sums == anew.sums
    assert [found.get(each.run_id) for each in found] == list(found)
    assert [found[at] for at in range(len(found))] == list(found)


@pytest.mark.requirement("children:same-as-a-list")
def test_two_lists_that_grew_out_of_one_do_not_see_each_others_runs() -> None:
    base = some(CHUNK)

    one, other = base.added(a_child(1_000)), base.added(a_child(2_000))

    assert (len(base), base.get(run_id(1_000)), base.get(run_id(2_000))) == (CHUNK, None, None)
    assert (one.get(run_id(1_000)), one.get(run_id(2_000))) == (a_child(1_000), None)
    assert (other.get(run_id(1_000)), other.get(run_id(2_000))) == (None, a_child(2_000))
    assert one != other
    assert one == base.added(a_child(1_000))
    assert hash(one) == hash(base.added(a_child(1_000)))


@pytest.mark.requirement("children:same-as-a-list")
def test_it_is_indexed_sliced_and_shown_like_a_list() -> None:
    found = some(3)

    assert (found[0], found[-1], found[1:]) == (a_child(0), a_child(2), (a_child(1), a_child(2)))
    assert repr(found) == f"Children({[a_child(0), a_child(1), a_child(2)]!r})"
    assert not Children()
    with pytest.raises(IndexError):
        found[3]


@pytest.mark.requirement("children:told-once")
def test_telling_a_run_of_its_children_marks_them_and_leaves_the_run_as_it_was() -> None:
    before = some(2).settled(run_id(0), OK, "one")

    told = before.told(each.run_id for each in before.untold)

    assert [(each.told, each.result) for each in told] == [(True, "one"), (True, None)]
    assert [each.told for each in before] == [False, False]
    assert (before.untold, told.untold) == (tuple(before), ())
    assert told.told_to_nobody() == before


@pytest.mark.requirement("children:told-once")
def test_what_a_judge_said_is_no_result_that_did_not_arrive() -> None:
    judged = some(1).added(Child(run_id=run_id(1), label="judge", told=True, judges=1))

    assert [each.run_id for each in judged.told_to_nobody().untold] == [run_id(0)]


@pytest.mark.requirement("children:unchanged-is-the-same")
def test_what_changes_nothing_gives_the_list_itself() -> None:
    ended = some(2).settled(run_id(0), OK, "one").returned(run_id(0), (1, 1))

    for same in (
        ended.settled(run_id(0), Outcome(status=OK.status, error="again"), "two"),
        ended.settled(run_id(7), OK, None),
        ended.returned(run_id(0), (1, 1)),
        ended.returned(run_id(1), (1, 1)),
        ended.reported(run_id(0), used(5), Committed()),
        ended.reported(run_id(1), Spent(), Committed()),
        ended.told(()),
    ):
        assert same is ended
    assert ended.told((run_id(0),)).sums is ended.sums


@pytest.mark.requirement("budget:rolled-up")
@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=20), st.randoms())
def test_dollars_are_added_up_without_rounding_in_any_order(
    costs: list[float], rng: object
) -> None:
    found = some(len(costs))
    order = list(range(len(costs)))
    rng.shuffle(order)  # type: ignore[attr-defined]  # random.Random, as hypothesis draws it
    for at in order:
        found = found.reported(run_id(at), used(1e12 / 3), Committed(cost_usd=0.1))
    for at in order:
        found = found.reported(run_id(at), used(costs[at]), Committed(cost_usd=costs[at]))

    assert found.spent.cost_usd == math.fsum(costs)
    assert found.committed.cost_usd == math.fsum(costs)


@pytest.mark.requirement("budget:usage-unknown")
def test_an_amount_that_no_child_knows_is_unknown_and_not_nothing() -> None:
    found = some(2)
    assert found.spent == Spent(runs=2)

    found = found.reported(run_id(1), used(0.5, runs=3), Committed(runs=3))
    assert found.spent == Spent(cost_usd=0.5, runs=4)

    found = found.reported(run_id(1), used(None, 8, runs=3), Committed(runs=3))
    assert found.spent == Spent(tokens_in=8, runs=4)


@pytest.mark.requirement("store:old-state")
def test_they_are_written_as_the_lists_that_earlier_versions_wrote() -> None:
    plain = [msgspec.to_builtins(a_child(0)), msgspec.to_builtins(a_child(1))]
    encoded = msgspec.json.encode(some(2), enc_hook=linked_runs.as_list)

    assert msgspec.json.decode(encoded) == plain
    decoder = msgspec.json.Decoder(Children, dec_hook=linked_runs.from_list)
    assert decoder.decode(encoded) == some(2)
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(b'[{"label": "without an id"}]')


@pytest.mark.requirement("store:old-state")
def test_a_run_that_waits_for_nothing_writes_nothing_of_it() -> None:
    waits = Waiting(
        dependencies=Dependencies([Dependency(run_id=run_id(1), label="a")]), deadline_ms=5
    )
    decoder = msgspec.json.Decoder(Waiting, dec_hook=linked_runs.from_list)

    def encoded(value: Waiting) -> bytes:
        return msgspec.json.encode(value, enc_hook=linked_runs.as_list)

    assert decoder.decode(encoded(waits)) == waits
    assert encoded(Waiting(deadline_ms=5)) == b'{"deadlineMs":5}'


@pytest.mark.requirement("store:old-state")
def test_other_values_have_no_form_that_they_could_be_written_in() -> None:
    with pytest.raises(NotImplementedError):
        linked_runs.as_list(object())
    with pytest.raises(NotImplementedError):
        linked_runs.from_list(set, [])


@pytest.mark.requirement("spawn:dependencies")
def test_a_run_that_is_waited_for_twice_settles_in_both_places() -> None:
    twice = Dependency(run_id=run_id(1), label="a")
    found = Dependencies([twice, Dependency(run_id=run_id(2), label="b"), twice])

    settled = found.settled(run_id(1), OK, "one")

    assert [each.result for each in settled] == ["one", None, "one"]
    assert (found.active, settled.active) == (3, 1)
    assert settled.settled(run_id(1), OK, "two") is settled


@pytest.mark.requirement("children:linear")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_costs_the_same_among_ten_thousand_as_among_ten(change: Change) -> None:
    few, many = some(10).settled(run_id(3), OK, None), some(10_000).settled(run_id(3), OK, None)

    def calls(found: Children) -> int:
        with counting_calls() as counted:
            change(found, 3)
        return counted.calls

    assert calls(many) == calls(few)
