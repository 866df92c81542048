"""Every runtime of ours does what a runtime must do."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import off_loop
from tests.runtimes.runtime_places import CommandPlace, ScriptedPlace

from subagents.domain.run.signals import Signal
from subagents.domain.run.spec import Abilities
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.kernel.system_clock import SystemClock
from subagents.errors import RuntimeUnavailable
from subagents.extensions.testing.conformance import Behaviour, Broken
from subagents.extensions.testing.runtime_suite import SUITE, RuntimePlace
from subagents.ports import AttemptRef, Launch, LongResult, StartedInfo
from subagents.runtimes.command import CommandRuntime

each_with_its_requirement = [
    pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
    for each in SUITE.behaviours
]


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_command_keeps_this_promise(behaviour: Behaviour[RuntimePlace], tmp_path: Path) -> None:
    place = CommandPlace(tmp_path)
    with place.harness:
        behaviour.check(place)


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_script_keeps_this_promise(behaviour: Behaviour[RuntimePlace], tmp_path: Path) -> None:
    behaviour.check(ScriptedPlace(tmp_path))


class Wrong(CommandRuntime):
    """A command runtime that breaks its promises, one by one."""


class NeverAdopts(Wrong):
    async def start(self, launch: Launch) -> StartedInfo:
        await super().start(launch)
        return StartedInfo()


class RepeatsItself(Wrong):
    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]]:
        async for each in super().watch(ref, cursor=0, positions={}):
            yield each


class LosesWhatWasSaid(Wrong):
    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]]:
        async for each in super().watch(ref, cursor=cursor, positions=positions):
            if not isinstance(each[0], OutputBatch):
                yield each


class NeverStops(Wrong):
    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """Does nothing."""


class ClaimsToSteer(Wrong):
    abilities = Abilities(survives_daemon=True, usage=True, steer=True)


class ClaimsToResume(Wrong):
    abilities = Abilities(survives_daemon=True, usage=True, resume=True)


class ClaimsToInterrupt(Wrong):
    abilities = Abilities(survives_daemon=True, usage=True, interrupt=True)


class KeepsFiles(Wrong):
    async def forget(self, ref: AttemptRef) -> None:
        """Does nothing."""


@pytest.mark.requirement("runtime:suite-can-fail")
@pytest.mark.parametrize(
    ("wrong", "requirement"),
    [
        (NeverAdopts, "runtime:start-repeated"),
        (RepeatsItself, "runtime:restart"),
        (LosesWhatWasSaid, "runtime:reads"),
        (NeverStops, "runtime:stop"),
        (NeverStops, "runtime:stop-first"),
        (ClaimsToSteer, "runtime:steer"),
        (ClaimsToResume, "runtime:resume"),
        (ClaimsToInterrupt, "runtime:interrupt"),
        (KeepsFiles, "runtime:forget"),
    ],
)
def test_a_runtime_that_breaks_a_promise_is_found_out(
    wrong: type[Wrong], requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.extensions.testing.runtime_place.BOUND_S", 1.0)

    class Place(CommandPlace):
        def runtime(self) -> CommandRuntime:
            return wrong(self.harness.root, SystemClock(), off_loop)

    (behaviour,) = (each for each in SUITE.behaviours if each.requirement == requirement)
    place = Place(tmp_path)
    with place.harness, pytest.raises((Broken, RuntimeUnavailable)):
        behaviour.check(place)
