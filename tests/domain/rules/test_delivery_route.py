"""Who hears of an end, and by which channels in which order."""

import pytest
from tests.builders import Life

from subagents.domain.rules.delivery_route import route, skip_reason
from subagents.domain.run.outcome import Skipped, SkipReason
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId


@pytest.mark.requirement("delivery:order", "delivery:dispatch-order")
def test_direct_comes_first_when_a_completion_message_is_expected_and_last_when_not() -> None:
    expected = Life.begin(RunSpec(task="t")).run
    quiet = Life.begin(RunSpec(task="t", expects_completion_message=False)).run

    assert route(expected).phases == ("direct-primary", "steer-fallback", "queue-fallback")
    assert route(quiet).phases == ("steer-primary", "queue-primary", "direct-fallback")


@pytest.mark.requirement("delivery:nested-is-internal", "delivery:bubbles-up")
def test_a_childs_child_goes_to_no_outside_channel() -> None:
    run = Life.begin(requester_run=RunId("r-parent"), depth=2).run

    found = route(run)

    assert found.mode == "internal"
    assert all("direct" not in phase for phase in found.phases)


@pytest.mark.requirement("delivery:silent-texts")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ANNOUNCE_SKIP", SkipReason.ANNOUNCE_SKIP),
        (" NO_REPLY\n", SkipReason.SILENT),
        ("NO_REPLY.", None),
        ("no_reply", None),
        ("I say ANNOUNCE_SKIP", None),
        ("", None),
    ],
)
def test_the_two_silent_texts_alone_skip_the_push_but_not_the_inbox(
    text: str, reason: SkipReason | None
) -> None:
    life = Life.begin().start().result(text).exit()

    assert skip_reason(life.run) == (None if reason is None else Skipped(reason=reason))
    assert [m.consumed for m in life.messages] == [False]


@pytest.mark.requirement("cancel:cascaded-is-quiet")
def test_nobody_is_pushed_the_end_of_a_child_that_went_with_its_parent() -> None:
    life = Life.begin().start().cancel(cascaded=True).exit()

    assert skip_reason(life.run) == Skipped(reason=SkipReason.NOT_EXPECTED)
