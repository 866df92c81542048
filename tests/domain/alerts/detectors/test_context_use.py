"""How full the context is."""

import pytest
from tests.domain.alerts.detectors.detector_inputs import context, see, texts


@pytest.mark.requirement("detectors:context")
def test_thresholds_of_the_window_are_told_once_each() -> None:
    watch, alerts = see(*(context(tokens) for tokens in range(0, 196_000, 5_000)))

    assert [each.text for each in alerts] == [
        "🧠 Context at 50%",
        "🧠 Context at 75% — may compact soon",
        "🧠 Context at 90% — may compact soon",
    ]
    assert alerts[1].fields == {"percent": 75, "tokens": 150_000}
    assert [each.key for each in alerts] == [f"context_pressure:1:{n}" for n in (50, 75, 90)]
    assert (watch.context_tokens, watch.context_percent) == (195_000, 97)


@pytest.mark.requirement("detectors:context")
def test_after_a_compaction_thresholds_are_due_again_and_a_little_up_and_down_is_none() -> None:
    up_and_down = [context(tokens) for tokens in (151_000, 149_000, 152_000, 145_000, 150_000)]
    _, again = see(context(185_000), context(60_000), context(155_000))

    assert len(texts(*up_and_down)) == 1
    assert [each.key for each in again] == ["context_pressure:1:90", "context_pressure:1:75.2"]


@pytest.mark.requirement("detectors:context")
@pytest.mark.parametrize(
    ("model", "percent"),
    [
        ("claude-sonnet-4-5-20250929", 80),
        ("anthropic/claude-opus-4-1", 80),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 80),
        ("claude-sonnet-4-5[1m]", 16),
        ("gpt-5-codex", 40),
        ("gpt-4o-mini", 125),
        ("models/gemini-2.5-pro", 15),
        ("house-model", None),
        (None, None),
    ],
)
def test_a_window_that_is_not_told_is_looked_up_by_the_models_name(
    model: str | None, percent: int | None
) -> None:
    watch, alerts = see(context(160_000, window=None, model=model))

    assert watch.context_percent == percent
    assert bool(alerts) == (percent is not None and percent >= 50)
