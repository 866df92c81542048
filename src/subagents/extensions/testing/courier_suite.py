"""What every ``Courier`` must do (ports.Courier), tried on a real one.

from subagents.extensions.testing.conformance import Behaviour, CourierPlace
from subagents.extensions.testing.courier_suite import SUITE

@pytest.mark.parametrize("behaviour", SUITE.behaviours, ids=lambda each: each.name)
def test_my_courier(behaviour: Behaviour[CourierPlace]) -> None:
    behaviour.check(MyPlace())
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from subagents.domain.run.outcome import (
    OK,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
)
from subagents.domain.run.run import (
    Conclusion,
    Message,
    MessageKind,
    Phase,
    Run,
)
from subagents.domain.run.values import SessionKey, announcement_id
from subagents.errors import SubagentsError
from subagents.extensions.testing.conformance import (
    Broken,
    CourierPlace,
    Suite,
    expect,
)
from subagents.extensions.testing.stored_values import NOW_MS, a_run
from subagents.ports import Courier

T = TypeVar("T")

BOUND_S: Final = 10.0
"""No single step of a courier that is cancelled, or that nothing hinders, takes longer."""
TIMEOUT_S: Final = 0.3
LOOK_S: Final = 0.01
AT_ONCE: Final = 20
LONG_TEXT: Final = 'Grüße, ☃ und 👩‍🚀: `code` "quotes" $(id) {text} %s\r\n\ttabs\x1b[0m\n' * 3_000
"""Text of over 200,000 bytes, with all that a shell, a template or a terminal could take for its
own."""

SUITE: Suite[CourierPlace] = Suite()


def settled_run(number: int = 1, *, requester: SessionKey) -> Run:
    """A run that ended well; its id grows with its number."""
    end = Conclusion(outcome=OK, ended_at_ms=NOW_MS)
    return a_run(number, requester=requester, phase=Phase.ANNOUNCING, conclusion=end)


def announced(run: Run, text: str = "it is done") -> Message:
    return Message(
        id=announcement_id(run.id),
        session_key=run.requester,
        run_id=run.id,
        kind=MessageKind.ANNOUNCEMENT,
        created_at_ms=NOW_MS,
        text=text,
    )


def play(scenario: Callable[[Courier], Awaitable[T]], place: CourierPlace) -> T:
    """Run a scenario on a fresh event loop, and fail when it does not end."""

    async def bounded() -> T:
        async with asyncio.timeout(6 * BOUND_S):
            return await scenario(await place.courier())

    return asyncio.run(bounded())


async def deliver(courier: Courier, place: CourierPlace, run: Run, text: str) -> DeliveryOutcome:
    message = announced(run, text)
    return await courier.deliver(run, message, place.requester)


async def refused(courier: Courier, place: CourierPlace, run: Run) -> None:
    """One try that must not succeed; a refusal is an outcome or an error of ours, nothing else."""
    try:
        outcome = await deliver(courier, place, run, "unwelcome")
    except SubagentsError:
        return
    if not isinstance(outcome, Deferred | DeliveryFailed):
        raise Broken(f"a refusal is a typed outcome\n  found: {outcome!r}")
    if isinstance(outcome, DeliveryFailed) and not outcome.error:
        raise Broken("a failed try says why")


def expect_delivered(promise: str, outcome: DeliveryOutcome) -> None:
    if not isinstance(outcome, Delivered):
        raise Broken(f"{promise}\n  found: {outcome!r}")


@SUITE.behaviour("courier:serves")
def it_serves_its_own_requesters_and_no_others(place: CourierPlace) -> None:
    async def scenario(courier: Courier) -> None:
        expect("serves its own", found=courier.serves(place.target, place.requester), wanted=True)
        expect("leaves others alone", found=courier.serves(*place.stranger), wanted=False)

    play(scenario, place)
    expect("asking carries nothing", found=list(place.received()), wanted=[])


@SUITE.behaviour("courier:hands-over")
def what_it_carries_arrives_once_under_its_id(place: CourierPlace) -> None:
    run = settled_run(requester=place.target)

    async def scenario(courier: Courier) -> None:
        expect_delivered("carried", await deliver(courier, place, run, "it is done"))

    play(scenario, place)
    arrived = [(each.message_id, each.text) for each in place.received()]
    expect("arrived once", found=arrived, wanted=[(announcement_id(run.id), "it is done")])


@SUITE.behaviour("courier:repeat")
def a_repeat_is_dropped_or_comes_again_under_the_same_id(place: CourierPlace) -> None:
    run = settled_run(requester=place.target)

    async def scenario(courier: Courier) -> None:
        for number in range(3):
            outcome = await deliver(courier, place, run, "it is done")
            expect_delivered(f"try {number + 1} with the same id", outcome)

    play(scenario, place)
    arrived = [(each.message_id, each.text) for each in place.received()]
    wanted = [(announcement_id(run.id), "it is done")] * (1 if place.dedupes else 3)
    expect("at least once, told apart by the id", found=arrived, wanted=wanted)


@SUITE.behaviour("courier:refusal")
def a_refusal_is_a_typed_outcome_and_nothing_arrives(place: CourierPlace) -> None:
    run = settled_run(requester=place.target)

    async def scenario(courier: Courier) -> None:
        place.refuse()
        await refused(courier, place, run)
        expect("a refusal hands nothing over", found=list(place.received()), wanted=[])
        place.mend()
        expect_delivered("the next try", await deliver(courier, place, run, "it is done"))

    play(scenario, place)
    expect("arrived once", found=len(place.received()), wanted=1)


@SUITE.behaviour("courier:cancel")
def cancelled_in_the_middle_it_ends_at_once_and_leaves_nothing(place: CourierPlace) -> None:
    run = settled_run(requester=place.target)

    async def scenario(courier: Courier) -> None:
        place.hang()
        trying = asyncio.ensure_future(deliver(courier, place, run, "it is done"))
        await until(place.has_begun, "the receiver has the line")
        trying.cancel()
        done, _ = await asyncio.wait({trying}, timeout=BOUND_S)
        expect("a cancelled try ends", found=len(done), wanted=1)
        expect("a cancelled try is cancelled", found=trying.cancelled(), wanted=True)
        await until(lambda: place.left_behind() == 0, "nothing of the try is left")
        place.mend()
        expect_delivered("the next try", await deliver(courier, place, run, "it is done"))

    play(scenario, place)
    texts = [each.text for each in place.received()]
    expect("only the last try arrived", found=texts, wanted=["it is done"])


@SUITE.behaviour("courier:timeout")
def a_receiver_that_never_answers_is_left_when_the_time_is_over(place: CourierPlace) -> None:
    run = settled_run(requester=place.target)

    async def scenario(courier: Courier) -> None:
        place.hang()
        began = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                outcome = await deliver(courier, place, run, "it is done")
                raise Broken(f"nobody answered\n  found: {outcome!r}")
        took_s = asyncio.get_running_loop().time() - began
        expect("ends when its time is over", found=took_s < BOUND_S, wanted=True)
        await until(lambda: place.left_behind() == 0, "nothing of the try is left")

    play(scenario, place)
    expect("nothing arrived", found=list(place.received()), wanted=[])


@SUITE.behaviour("courier:long-text")
def a_text_of_200_kilobytes_arrives_as_it_is(place: CourierPlace) -> None:
    run = settled_run(requester=place.target)

    async def scenario(courier: Courier) -> None:
        expect_delivered("carried", await deliver(courier, place, run, LONG_TEXT))

    play(scenario, place)
    arrived = [each.text.encode() for each in place.received()]
    expect("every byte", found=arrived, wanted=[LONG_TEXT.encode()])


@SUITE.behaviour("courier:many")
def many_at_once_all_arrive(place: CourierPlace) -> None:
    runs = [settled_run(number, requester=place.target) for number in range(1, AT_ONCE + 1)]

    async def scenario(courier: Courier) -> None:
        tries = [deliver(courier, place, run, f"result of {run.id}") for run in runs]
        for outcome in await asyncio.gather(*tries):
            expect_delivered("carried beside others", outcome)

    play(scenario, place)
    arrived = sorted((each.message_id, each.text) for each in place.received())
    wanted = [(announcement_id(run.id), f"result of {run.id}") for run in runs]
    expect("each arrived once, with its own text", found=arrived, wanted=wanted)


async def until(happened: Callable[[], bool], what: str) -> None:
    """Look again and again, at most ``BOUND_S``."""
    due = asyncio.get_running_loop().time() + BOUND_S
    while not happened():
        if asyncio.get_running_loop().time() > due:
            raise Broken(f"not within {BOUND_S:g} s: {what}")
        await asyncio.sleep(LOOK_S)
