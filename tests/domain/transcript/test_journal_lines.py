"""The transcript has a line for what only the journal knows, and one for the end of the run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import Life
from tests.domain.event_makers import lived

from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.domain.transcript.journal_lines import journal_line


def lines(life: Life) -> list[OutputItem | None]:
    return [journal_line(life.run, seq, event) for seq, event in enumerate(life.journal, 1)]


@pytest.mark.requirement("transcript:journal-lines")
def test_the_event_that_ends_the_run_says_so_in_its_own_line() -> None:
    found = [line for line in lines(Life.begin().start().result("done").exit()) if line]

    assert [(line.type, line.text) for line in found] == [
        (LineType.USER, "task from agent:main:main: do it"),
        (LineType.SYSTEM, "attempt 1 started"),
        (LineType.SYSTEM, "attempt 1 exited with code 0 — run ended: ok"),
    ]


@pytest.mark.requirement("transcript:journal-lines")
def test_a_reason_stands_behind_the_status() -> None:
    last = lines(Life.begin().start().exit(3))[-1]

    assert last is not None
    assert last.text.endswith("— run ended: error (exit_code)")


@pytest.mark.requirement("transcript:journal-lines")
@given(st.data())
def test_whatever_happens_the_end_of_a_run_is_told_once(data: DataObject) -> None:
    life = lived(data)

    ends = [line for line in lines(life) if line is not None and "run ended: " in line.text]
    assert len(ends) == life.run.is_settled
