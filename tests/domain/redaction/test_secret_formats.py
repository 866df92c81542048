"""Formats that others publish are known, and what tools print all day is not taken for one."""

import random
from collections import Counter

import pytest
from tests.ordinary_output import lines_of_this_machine, ordinary_lines
from tests.published_secrets import printed

from subagents.domain.redaction.redact import Redactor, redact
from subagents.domain.redaction.secret_spans import REDACTED

TIMES = 20
MISSED_MAX = 2
"""Of so many times: what is known by being random beside a name does not always look it."""
CHANGED_PER_MILLE = 1


def still_there(shown: str, secret: str) -> bool:
    """The secret, or its half, or nothing hidden at all."""
    return REDACTED not in shown or secret in shown or secret[len(secret) // 2 :] in shown


@pytest.mark.requirement("redact:published-formats")
def test_secrets_of_the_formats_that_others_publish_are_taken_out() -> None:
    missed: Counter[str] = Counter()
    for seed in range(TIMES):
        known = printed(random.Random(seed))  # noqa: S311  # they shall be the same in every run
        missed.update(
            kind
            for kind, (text, secret) in known.items()
            if still_there(redact(f"it printed {text} there"), secret)
        )

    assert len(known) > 280
    assert max(missed.values(), default=0) <= MISSED_MAX, missed
    assert missed.total() * 200 < len(known) * TIMES, missed


@pytest.mark.requirement("redact:published-formats")
def test_the_text_around_a_secret_stays() -> None:
    for kind, (text, secret) in printed(random.Random(7)).items():  # noqa: S311
        if text == secret and "=" not in secret:
            shown = redact(f"before {text} behind\nnext")
            assert shown == f"before {REDACTED} behind\nnext", kind


@pytest.mark.requirement("redact:ordinary-output")
def test_lines_that_tools_print_all_day_are_left_alone() -> None:
    lines = list(ordinary_lines(20_000))

    shown, _ = Redactor().fold(lines)

    assert [(old, new) for old, new in zip(lines, shown, strict=True) if new != old] == []


@pytest.mark.requirement("redact:ordinary-output")
def test_of_sources_and_listings_of_this_machine_less_than_one_line_in_a_thousand_is_changed() -> (
    None
):
    lines = list(lines_of_this_machine())

    shown, _ = Redactor().fold(lines)

    changed = [(old, new) for old, new in zip(lines, shown, strict=True) if new != old]
    assert len(lines) > 50_000
    assert len(changed) * 1000 < len(lines) * CHANGED_PER_MILLE, changed[:50]
