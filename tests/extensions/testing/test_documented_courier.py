"""The courier of docs/couriers.md works as it stands there."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.page_blocks import ROOT, blocks

from subagents.domain.run.outcome import Delivered, DeliveryFailed
from subagents.domain.run.values import SessionKey
from subagents.extensions.testing.courier_suite import announced, settled_run
from subagents.extensions.testing.stored_values import ME


@pytest.mark.requirement("couriers:documented")
def test_the_documented_courier_writes_a_result_once_and_says_why_it_could_not(
    tmp_path: Path,
) -> None:
    names: dict[str, Any] = {}
    (body,) = (each.body for each in blocks(ROOT / "docs" / "couriers.md") if "class" in each.body)
    exec(body, names)  # noqa: S102 - the page's own code
    file = tmp_path / "results.jsonl"
    (courier,) = names["couriers"](SimpleNamespace(paths=SimpleNamespace(state_dir=tmp_path)))
    run = settled_run(requester=ME)

    assert courier.serves(ME, None)
    assert not courier.serves(SessionKey("agent:other:main"), None)
    for _ in range(2):
        told = asyncio.run(courier.deliver(run, announced(run), None))
        assert isinstance(told, Delivered)
    assert len(file.read_text().splitlines()) == 1
    file.unlink()
    file.mkdir()
    failed = asyncio.run(courier.deliver(run, announced(run), None))
    assert isinstance(failed, DeliveryFailed)
    assert failed.retryable
