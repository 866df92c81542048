"""What workers share of a provider's limits."""

import asyncio
from pathlib import Path

import pytest

from subagents.extensions.llm.agent_loop import shared_limits
from subagents.extensions.llm.agent_loop.shared_limits import (
    CALM_S,
    FIRST_S,
    LAST_S,
    LimitGate,
    ProviderClosed,
    Turn,
    fingerprint,
)

BOUND_S = 60.0


class Clock:
    """Wall time by hand."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now_s


def gate(root: Path, clock: Clock) -> LimitGate:
    return LimitGate(root, "h", wall_s=clock, chance=lambda: 0.0)


async def go(one: LimitGate) -> Turn:
    """A turn that ends at once, without a word."""
    async with one.turn(lambda _: None) as turn:
        return turn


@pytest.mark.requirement("llm:limits:fingerprint")
def test_who_shares_a_limit_is_named_by_a_hash_of_provider_address_and_key() -> None:
    name = fingerprint("openai", None, "sk-secret")
    assert name == fingerprint("openai", None, "sk-secret")
    others = {
        fingerprint("anthropic", None, "sk-secret"),
        fingerprint("openai", "http://here", "sk-secret"),
        fingerprint("openai", None, "sk-other"),
    }
    assert len(others | {name}) == 4
    assert "secret" not in name


@pytest.mark.requirement("llm:limits:open")
def test_where_nothing_is_known_everybody_asks_at_once(tmp_path: Path) -> None:
    turns = [asyncio.run(go(gate(tmp_path, Clock()))) for _ in range(3)]
    assert not any(turn.is_probe for turn in turns)


@pytest.mark.requirement("llm:limits:one-probe")
def test_when_the_time_has_passed_one_asks_and_the_others_wait_for_what_it_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "PROBE_POLL_S", 0.0)
    clock = Clock()
    first, second = gate(tmp_path, clock), gate(tmp_path, clock)
    first.close(5.0, is_probe=False)
    clock.now_s += 6

    async def run() -> None:
        async with asyncio.timeout(BOUND_S), first.turn(lambda _: None) as probe:
            assert probe.is_probe
            waiting = asyncio.create_task(go(second))
            for _ in range(100):  # turns of the loop, in each of which it looks again
                await asyncio.sleep(0)
            assert not waiting.done()
            probe.served()
            assert not (await waiting).is_probe

    asyncio.run(run())
    assert first.closed() is None


@pytest.mark.requirement("llm:limits:one-probe")
def test_a_probe_that_dies_leaves_the_asking_to_the_next(tmp_path: Path) -> None:
    clock = Clock()
    first, second = gate(tmp_path, clock), gate(tmp_path, clock)
    first.close(1.0, is_probe=False)
    clock.now_s += 2

    async def run() -> Turn:
        with pytest.raises(RuntimeError):
            async with first.turn(lambda _: None):
                raise RuntimeError
        async with asyncio.timeout(BOUND_S):
            return await go(second)

    assert asyncio.run(run()).is_probe


@pytest.mark.requirement("llm:limits:back-off")
def test_without_a_word_of_the_provider_each_refused_probe_doubles_the_wait_up_to_a_minute(
    tmp_path: Path,
) -> None:
    one = gate(tmp_path, Clock())
    waits = [one._wait_s(level, None) / 0.75 for level in (1, 2, 3, 10)]
    assert waits == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, LAST_S]


@pytest.mark.requirement("llm:limits:back-off")
def test_refusals_at_the_same_time_count_once_and_those_of_probes_each(tmp_path: Path) -> None:
    clock = Clock()
    one = gate(tmp_path, clock)
    for _ in range(8):
        one.close(None, is_probe=False)
    assert one.closed() == ProviderClosed(int((clock.now_s + 0.75) * 1000), 1)
    clock.now_s += 1
    one.close(None, is_probe=True)
    assert one.closed() == ProviderClosed(int((clock.now_s + 1.5) * 1000), 2)


@pytest.mark.requirement("llm:limits:back-off")
def test_the_providers_own_time_is_kept_and_never_shortened_by_another_worker(
    tmp_path: Path,
) -> None:
    clock = Clock()
    one = gate(tmp_path, clock)
    assert one.close(120.0, is_probe=False) == pytest.approx(120, abs=0.01)
    assert one.close(1.0, is_probe=False) == pytest.approx(120, abs=0.01)


@pytest.mark.requirement("llm:limits:old")
def test_a_refusal_long_ago_and_a_broken_file_keep_nobody_from_asking(tmp_path: Path) -> None:
    clock = Clock()
    one = gate(tmp_path, clock)
    one.close(1.0, is_probe=False)
    clock.now_s += CALM_S + 2
    assert one.closed() is None
    (tmp_path / "h.json").write_text("{")
    assert one.closed() is None
