"""Every courier of ours does what a courier must do."""

from pathlib import Path

import pytest
from tests.couriers.courier_suites import each_with_its_requirement
from tests.extensions.notifications.command_place import CommandPlace

from subagents.domain.run.outcome import Delivered, DeliveryOutcome, DeliveryPath
from subagents.domain.run.run import Message, Run
from subagents.domain.run.values import SessionKey
from subagents.extensions.testing.conformance import Behaviour, Broken, CourierPlace
from subagents.extensions.testing.courier_suite import SUITE


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_command_keeps_this_promise(behaviour: Behaviour[CourierPlace], tmp_path: Path) -> None:
    behaviour.check(CommandPlace(tmp_path))


class Liar(CommandPlace):
    """Says delivered and carries nothing, to everybody."""

    async def courier(self) -> "Liar":  # type: ignore[override]
        return self

    name = "liar"

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        return True

    async def deliver(self, run: Run, message: Message, requester: Run | None) -> DeliveryOutcome:
        return Delivered(path=DeliveryPath.DIRECT)


@pytest.mark.requirement("courier:suite-can-fail")
@pytest.mark.parametrize("behaviour", SUITE.behaviours, ids=lambda each: each.name)
def test_a_courier_that_only_says_delivered_keeps_no_promise(
    behaviour: Behaviour[CourierPlace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.extensions.testing.courier_suite.BOUND_S", 0.2)
    with pytest.raises(Broken):
        behaviour.check(Liar(tmp_path))
