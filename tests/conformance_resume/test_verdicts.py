"""The judge can fail: what it says of a good record of each property, and of a doctored one."""

from collections.abc import Callable, Sequence

import pytest
from tests.conformance_resume.run import table
from tests.conformance_resume.verdicts import (
    Ack,
    Checkpoint,
    Effects,
    Finding,
    Fork,
    Handed,
    Lines,
    Offer,
    Readings,
    Recovery,
    Row,
    Says,
    Talks,
    Turn,
    judge_checkpoints,
    judge_forks,
    judge_handed,
    judge_lines,
    judge_outside,
    judge_readings,
    judge_recoveries,
    judge_starts,
    judge_talks,
)

A, B, C = [1, "Spawned"], [2, "SlotGranted"], [3, "AttemptStarted", None]
OTHER = [2, "Cancelled"]


def said(judge: Callable[..., Finding], *given: object, **more: object) -> Sequence[str]:
    return judge(*given, **more).wrong


@pytest.mark.requirement("resume:judge")
def test_a_prefix_that_changed_and_a_step_that_is_missing_or_done_twice_are_found() -> None:
    def record(*looks: list[list[object]], steps: Sequence[int] = (1, 2)) -> Lines:
        return Lines({"r": [*looks]}, {"r": [*steps]}, {"r": [*steps]})

    assert said(judge_lines, record([A], [A, B], [A, B, C])) == ()
    assert "entry 2 of 2 is another" in said(judge_lines, record([A, B], [A, OTHER]))[0]
    assert "entry 2 of 2 is another" in said(judge_lines, record([A, B], [A]))[0]
    assert "3 in place 2" in said(judge_lines, record(steps=(1, 3)))[0]
    assert "1 in place 2" in said(judge_lines, record(steps=(1, 1)))[0]
    assert "2 steps, 1 lines" in said(judge_lines, Lines({}, {"r": [1]}, {"r": [1, 2]}))[0]


@pytest.mark.requirement("resume:judge")
def test_a_turn_that_begins_from_another_conversation_or_a_message_told_twice_is_found() -> None:
    def record(*turns: tuple[str, str, str]) -> Talks:
        return Talks([Turn("s", *each) for each in turns], [["m0", "m1"]])

    first = ("0:e", "2:a", "say <m0>")
    assert said(judge_talks, record(first, ("2:a", "4:b", "say <m1>"))) == ()
    assert "began from 0:e" in said(judge_talks, record(first, ("0:e", "2:b", "say <m1>")))[0]
    assert said(judge_talks, record(first))[0] == "m1 was told 0 times"
    twice = (first, ("2:a", "4:b", "say <m1>"), ("4:b", "6:c", "say <m1>"))
    assert said(judge_talks, record(*twice))[0] == "m1 was told 2 times"
    backwards = record(("0:e", "2:a", "say <m1>"), ("2:a", "4:b", "say <m0>"))
    assert "another order" in said(judge_talks, backwards)[0]
    assert said(judge_talks, backwards, in_order=False) == ()


@pytest.mark.requirement("resume:judge")
def test_an_effect_that_is_lost_or_doubled_is_found() -> None:
    def starts(runs: Sequence[str], began: Sequence[str]) -> Sequence[str]:
        return said(judge_starts, Effects({"k": [*runs]}, {"k": [*began]}))

    assert starts(["r-1", "r-1"], ["r-1#1"]) == ()
    assert "is 2 runs" in starts(["r-1", "r-2"], ["r-1#1"])[0]
    assert "is 2 runs" in starts(["r-1"], ["r-2#1"])[0]
    assert starts(["r-1"], ["r-1#1", "r-1#1"]) == ("r-1#1 began 2 times",)
    assert starts(["r-1"], ["r-1#1", "r-1#2"]) == ("k came to 2 attempts",)
    assert starts(["r-1"], []) == ("k was acknowledged and never began",)

    def handed(*came: tuple[str, str], unsure: Sequence[str] = ()) -> Sequence[str]:
        return said(judge_handed, Handed(["a"], {*unsure}, [*came]), repeats_max=1)

    assert handed(("a", "1"), ("a", "1")) == ()
    assert handed() == ("a never came",)
    assert handed(unsure=["a"]) == ()
    assert handed(("a", "1"), ("a", "2")) == ("a came under 2 ids",)
    assert "more than 1" in handed(*[("a", "1")] * 3)[0]
    assert handed(("a", "1"), ("b", "2")) == ("b came and nobody sent it",)
    assert said(judge_outside, {"a": 1}) == ()
    assert said(judge_outside, {"a": 2, "b": 1}) == ("1 of 2 did their work again",)


@pytest.mark.requirement("resume:judge")
def test_a_fork_that_begins_otherwise_or_changes_its_origin_is_found() -> None:
    def fork(*begun: str, journal: Sequence[object] = (A, B), known: str = "x") -> Sequence[str]:
        runs: dict[str, object] = {f"r-{at}": each for at, each in enumerate(begun)}
        return said(judge_forks, [Fork([([A, B], [*journal])], [("x", known)], runs)])  # type: ignore[list-item]

    assert fork("same", "same", "same", journal=(A, B, [3, "Continued", None])) == ()
    line = [3, "system", "run r-9 continues its session"]
    assert fork("same", "same", "same", journal=(A, B, line)) == ()
    assert fork("same", "same", "else") == ("fork 1: r-2 began otherwise than r-0",)
    assert "has 2 runs" in fork("same", "same")[0]
    assert "is not what it was" in fork(*["same"] * 3, journal=(A, OTHER))[0]
    assert "added AttemptStarted" in fork(*["same"] * 3, journal=(A, B, C))[0]
    assert "is not what it was" in fork(*["same"] * 3, known="y")[0]


@pytest.mark.requirement("resume:judge")
def test_a_checkpoint_that_lacks_what_was_told_or_cannot_be_gone_on_with_is_found() -> None:
    def checkpoint(**more: object) -> Sequence[str]:
        good: dict[str, object] = {
            "told": {"r": [A]},
            "whole": {"r": [A, B, C]},
            "resumed": {"r": [A, OTHER]},
            "ended": {"r": "lost"},
        }
        return said(judge_checkpoints, [Checkpoint(**{**good, **more})])  # type: ignore[arg-type]

    assert checkpoint() == ()
    assert "is not in it" in checkpoint(resumed={})[0]
    assert "changed in it" in checkpoint(told={"r": [A, B]})[0]
    assert "changed in the original" in checkpoint(whole={"r": [[1, "Else"]]})[0]
    assert "never was so" in checkpoint(resumed={"r": [A], "s": [A]}, ended={"r": 1, "s": 1})[0]
    assert "never ended" in checkpoint(ended={})[0]
    assert "had ended as ok" in checkpoint(ended_before={"r": "ok"})[0]
    assert checkpoint(trouble="it did not start") == ("checkpoint 1: it did not start",)


@pytest.mark.requirement("resume:judge")
def test_an_end_that_is_consumed_twice_or_never_is_found() -> None:
    def offer(reader: str, at_s: float, message: str = "m") -> Offer:
        return Offer(reader, message, "r", at_s - 0.1, at_s)

    def read(
        *offers: Offer, acks: Sequence[Ack] = (), kills: Sequence[float] = (), unread: str = ""
    ) -> Sequence[str]:
        left = [unread] if unread else []
        return said(judge_readings, Readings(["r"], [*offers], [*acks], [*kills], left))

    def ack(reader: str, at_s: float, *, consumed: int = 1, is_repeated: bool = False) -> Ack:
        return Ack(reader, "m", consumed, is_repeated, at_s)

    one, two = offer("one", 10), offer("two", 20)
    late = ack("two", 21)
    assert read(one, acks=[ack("one", 11)]) == ()
    assert read(one, two, acks=[late], kills=[15]) == ()
    assert "at once" in read(one, two, acks=[late])[0]
    assert read(one, offer("two", 80), acks=[ack("two", 81)]) == ()
    assert "after it was acknowledged" in read(one, two, acks=[ack("one", 11)], kills=[15])[0]
    both = [ack("one", 21), ack("two", 21)]
    assert "was consumed by one and two" in read(one, two, acks=both, kills=[15])[0]
    assert "consumed by nobody" in read(one, acks=[ack("one", 11, consumed=0)])[0]
    assert read(one, acks=[ack("one", 11, consumed=0, is_repeated=True)]) == ()
    assert read() == ("the end of r was never handed over",)
    assert "is 2 messages" in read(one, offer("one", 10, "n"), acks=[late], kills=[9.5])[0]
    assert read(one, acks=[late], unread="m") == ("m was never read",)


@pytest.mark.requirement("resume:judge")
def test_recoveries_that_differ_in_a_state_or_in_what_they_hand_over_are_found() -> None:
    def recovered(left: object, right: object, sent: str = "m") -> Sequence[str]:
        states = {"left": {"r": left}, "right": {"r": right}}
        return said(judge_recoveries, [Recovery(states, {"left": {"m"}, "right": {sent}})])

    assert recovered("ok", "ok") == ()
    assert "r is ok at left, lost at right" in recovered("ok", "lost")[0]
    assert "m only at left" in recovered("ok", "ok", "n")[0]
    assert "one place only" in said(judge_recoveries, [Recovery({"left": {}}, {})])[0]


@pytest.mark.requirement("resume:judge")
def test_a_verdict_is_as_documented_when_the_page_says_so_and_the_table_says_if_not() -> None:
    def row(says: Says, *wrong: str, expected: Says = Says.HOLDS) -> Row:
        return Row("consume once", "readers", 7, 20, says, "of this", wrong, expected)

    good = row(Says.DOES_NOT, expected=Says.DOES_NOT)
    better = row(Says.HOLDS, expected=Says.DOES_NOT)
    worse = row(Says.DOES_NOT, "m came twice")
    told = table([good, better, worse])

    assert [each.is_as_documented for each in (good, better, worse)] == [True, False, False]
    assert told.count("WRONG the page says") == 2
    assert "WRONG m came twice" in told
