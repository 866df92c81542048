"""What every ``Runtime`` must do (ports.Runtime), tried on a real one.

from subagents.extensions.testing.conformance import Behaviour
from subagents.extensions.testing.runtime_suite import SUITE, RuntimePlace

@pytest.mark.parametrize("behaviour", SUITE.behaviours, ids=lambda each: each.name)
def test_my_runtime(behaviour: Behaviour[RuntimePlace], tmp_path: Path) -> None:
    behaviour.check(MyPlace(tmp_path))

A behaviour that needs work which the place cannot give (``launch`` returns None) is passed over,
unless the runtime's ``abilities`` claim it: then the place has to show it.
"""

import contextlib
from typing import Final

from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import RuntimeUnavailable, SubagentsError, UsageError
from subagents.extensions.testing.conformance import Suite, expect
from subagents.extensions.testing.runtime_place import (
    SPOKEN,
    RuntimePlace,
    Work,
    asked,
    gone,
    play,
    read,
    ref_of,
    unavailable,
    until,
    watched,
)
from subagents.ports import Runtime, abilities_of

__all__ = ["SUITE", "RuntimePlace", "Work"]

GRACE_S: Final = 0.5
SUITE: Suite[RuntimePlace] = Suite()


# -- starting and reading -----------------------------------------------------------------------


@SUITE.behaviour("runtime:reads")
def what_it_says_comes_in_order_and_ends_with_one_terminal_signal(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        runtime.check(launch.options)
        started = await runtime.start(launch)
        expect("the first start adopts nothing", found=started.adopted, wanted=False)
        seen = await read(runtime, ref_of(launch))
        expect("each is said once, in order", found=seen.words, wanted=list(SPOKEN))
        expect("the result has its last words", found="three" in (seen.result or ""), wanted=True)
        cursors = [cursor for each, cursor in seen.all if not isinstance(each, OutputBatch)]
        expect("the cursor never goes back", found=cursors, wanted=sorted(cursors))
        if abilities_of(runtime, launch.options).usage:
            usage = any(isinstance(each, UsageSeen) for each in seen.signals)
            expect("abilities say usage, and it tells it", found=usage, wanted=True)
        await gone(place)

    play(scenario, place)


@SUITE.behaviour("runtime:start-repeated")
def starting_twice_is_one_worker_that_was_adopted(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        first = await runtime.start(launch)
        again = await runtime.start(launch)
        expect("started, then adopted", found=(first.adopted, again.adopted), wanted=(False, True))
        seen = await read(runtime, ref_of(launch))
        expect("it worked once", found=seen.texts.count("one"), wanted=1)
        later = await runtime.start(launch)
        expect("adopted after its end, too", found=later.adopted, wanted=True)
        after = await read(runtime, ref_of(launch))
        expect("still once", found=after.words, wanted=seen.words)

    play(scenario, place)


@SUITE.behaviour("runtime:start-refused")
def what_cannot_start_is_refused_and_leaves_nothing(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = place.launch(Work.CANNOT_START)
        if launch is None:
            return
        try:
            await runtime.start(launch)
        except (RuntimeUnavailable, UsageError) as error:
            expect("the refusal says why", found=bool(error.message), wanted=True)
        else:
            seen = await read(runtime, ref_of(launch))
            expect("else its end is all there is", found=seen.texts, wanted=[])
        await gone(place)

    play(scenario, place)


@SUITE.behaviour("runtime:restart")
def reading_again_from_anywhere_gives_the_rest_and_nothing_twice(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        await runtime.start(launch)
        whole = await read(runtime, ref_of(launch))
        for count in range(len(whole.all)):
            kept = whole.upto(count)
            other = (
                place.runtime()
                if abilities_of(runtime, launch.options).survives_daemon
                else runtime
            )
            rest = await read(other, ref_of(launch), cursor=kept.cursor, positions=kept.positions)
            promise = f"after {count} of {len(whole.all)}"
            expect(promise, found=[*kept.words, *rest.words], wanted=whole.words)
            result = rest.result if rest.result is not None else kept.result
            expect(f"{promise}, the result", found=result, wanted=whole.result)

    play(scenario, place)


@SUITE.behaviour("runtime:survives")
def a_new_daemon_adopts_a_live_worker_and_goes_on_reading(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.WAITS)
        if not abilities_of(runtime, launch.options).survives_daemon:
            return
        await runtime.start(launch)
        async with watched(runtime, ref_of(launch)) as seen:
            await seen.waiting()
        living = place.alive()
        expect("it lives on when nobody reads", found=living > 0, wanted=True)
        newer = place.runtime()
        again = await newer.start(launch)
        expect("the new daemon adopts it", found=again.adopted, wanted=True)
        async with watched(newer, ref_of(launch), after=seen) as rest:
            await newer.stop(ref_of(launch), grace_s=GRACE_S)
            await until(lambda: rest.is_over, "it is seen to end")
        expect("nothing is said twice", found=rest.texts.count("waiting"), wanted=0)
        await gone(place)

    play(scenario, place)


# -- ending -------------------------------------------------------------------------------------


@SUITE.behaviour("runtime:stop")
def stop_ends_it_leaves_no_process_and_can_be_repeated(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = place.launch(Work.LEAVES_A_CHILD) or asked(place, Work.WAITS)
        ref = ref_of(launch)
        await runtime.start(launch)
        async with watched(runtime, ref) as seen:
            await seen.waiting()
            await runtime.stop(ref, grace_s=GRACE_S)
            expect("gone when stop returns", found=place.alive(), wanted=0)
            await runtime.stop(ref, grace_s=GRACE_S)
            await until(lambda: seen.is_over, "it is seen to end")
        expect("its end is told", found=seen.terminal is not None, wanted=True)
        await runtime.stop(ref, grace_s=GRACE_S)

    play(scenario, place)


@SUITE.behaviour("runtime:stop-first")
def what_was_stopped_before_it_started_never_works(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        await runtime.stop(ref_of(launch), grace_s=GRACE_S)
        with contextlib.suppress(SubagentsError):
            await runtime.start(launch)
        seen = await read(runtime, ref_of(launch))
        expect("it said nothing", found=seen.texts, wanted=[])
        await gone(place)

    play(scenario, place)


@SUITE.behaviour("runtime:never-started")
def an_attempt_that_was_never_started_is_seen_to_be_gone(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        seen = await read(runtime, ref_of(launch))
        expect("it said nothing", found=seen.texts, wanted=[])

    play(scenario, place)


@SUITE.behaviour("runtime:discard")
def what_is_kept_elsewhere_can_be_let_go_and_its_end_is_still_known(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        ref = ref_of(launch)
        await runtime.start(launch)
        seen = await read(runtime, ref)
        await runtime.discard(ref, cursor=seen.cursor, positions=seen.positions)
        rest = await read(runtime, ref, cursor=seen.cursor, positions=seen.positions)
        expect("nothing is said twice", found=rest.words, wanted=[])
        for _ in range(2):
            await runtime.discard(ref, cursor=seen.cursor, positions=seen.positions, ended=True)
        other = (
            place.runtime() if abilities_of(runtime, launch.options).survives_daemon else runtime
        )
        expect("adopted afterwards, too", found=(await other.start(launch)).adopted, wanted=True)
        await gone(place)

    play(scenario, place)


@SUITE.behaviour("runtime:forget")
def forgetting_leaves_no_file_and_can_be_repeated(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        await runtime.start(launch)
        await read(runtime, ref_of(launch))
        for _ in range(2):
            await runtime.forget(ref_of(launch))
            expect("no file of it is left", found=place.files(), wanted=0)

    play(scenario, place)


# -- talking to it ------------------------------------------------------------------------------


@SUITE.behaviour("runtime:steer")
def a_message_reaches_it_once_however_often_it_is_sent(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        waiting = asked(place, Work.WAITS)
        if not abilities_of(runtime, waiting.options).steer:
            await runtime.start(waiting)
            sending = runtime.steer(ref_of(waiting), "hello", key="k1")
            await unavailable("abilities say no steer", sending)
            await runtime.stop(ref_of(waiting), grace_s=GRACE_S)
            return
        launch = asked(place, Work.LISTENS, why="steer")
        ref = ref_of(launch)
        await runtime.start(launch)
        async with watched(runtime, ref) as seen:
            await seen.waiting()
            await runtime.steer(ref, "hello", key="k1")
            with contextlib.suppress(RuntimeUnavailable):
                await runtime.steer(ref, "hello", key="k1")
            await until(lambda: place.messages(runtime, ref, seen.texts), "it got the message")
            got = list(place.messages(runtime, ref, seen.texts))
            await runtime.stop(ref, grace_s=GRACE_S)
            await until(lambda: seen.is_over, "it is seen to end")
        expect("the same key twice is one message", found=got, wanted=["hello"])
        await unavailable("an ended one takes no message", runtime.steer(ref, "late", key="k2"))

    play(scenario, place)


@SUITE.behaviour("runtime:interrupt")
def an_interrupted_turn_ends_or_is_refused_as_its_abilities_say(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.WAITS)
        ref = ref_of(launch)
        await runtime.start(launch)
        async with watched(runtime, ref) as seen:
            await seen.waiting()
            if abilities_of(runtime, launch.options).interrupt:
                await runtime.interrupt(ref, key="i1")
                with contextlib.suppress(RuntimeUnavailable):
                    await runtime.interrupt(ref, key="i1")
            else:
                asking = runtime.interrupt(ref, key="i1")
                await unavailable("abilities say no interrupt", asking)
            await runtime.stop(ref, grace_s=GRACE_S)
            await until(lambda: seen.is_over, "it is seen to end")
        await gone(place)
        await unavailable("an ended one has no turn", runtime.interrupt(ref, key="i2"))

    play(scenario, place)


@SUITE.behaviour("runtime:resume")
def a_further_turn_goes_on_in_its_session_or_is_refused(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        await runtime.start(launch)
        first = await read(runtime, ref_of(launch))
        ref = ref_of(launch, turns=2, session=first.session)
        if not abilities_of(runtime, launch.options).resume:
            going = runtime.resume(ref, "and now", env=launch.env)
            await unavailable("abilities say no resume", going)
            return
        for _ in range(2):
            await runtime.resume(ref, launch.prompt, env=launch.env)
        seen = await read(runtime, ref, positions=first.positions)
        expect("the turn says something of its own", found=bool(seen.texts), wanted=True)
        expect("and comes to a result", found=seen.result is not None, wanted=True)
        await gone(place)

    play(scenario, place)


@SUITE.behaviour("runtime:scope")
def a_denied_tool_is_not_used(place: RuntimePlace) -> None:
    async def scenario(runtime: Runtime) -> None:
        launch = asked(place, Work.SAYS)
        if not abilities_of(runtime, launch.options).scope_tools or not place.tool:
            return
        allowed = asked(place, Work.USES_A_TOOL, why="scope_tools")
        denied = asked(place, Work.USES_A_TOOL, number=2, why="scope_tools")
        denied = replace(denied, tools_deny=(place.tool,))
        runtime.check_scope(denied.options, denied.tools, denied.tools_deny)
        await runtime.start(denied)
        tools = (await read(runtime, ref_of(denied))).tools
        expect("a denied tool did nothing", found=place.used_tool(tools), wanted=False)
        await runtime.start(allowed)
        tools = (await read(runtime, ref_of(allowed))).tools
        expect("and it works where it is allowed", found=place.used_tool(tools), wanted=True)

    play(scenario, place)
