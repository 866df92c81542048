"""Lines for a worker's input are sent once each, whoever dies in between."""

import os
from pathlib import Path

import pytest

from subagents.extensions.conversation.dialect import InputLine
from subagents.extensions.conversation.worker_input import WorkerInput, first_input


@pytest.mark.requirement("conversation:post:crash")
@pytest.mark.parametrize("cut", [0, 1, 5, 9])
def test_a_line_that_a_crash_cut_is_completed_and_never_doubled(tmp_path: Path, cut: int) -> None:
    for name, data in first_input([InputLine("a", b"first")]).items():
        (tmp_path / name).write_bytes(data)
    WorkerInput(tmp_path).send([InputLine("b", b"second \xc3\xa9")])
    whole = (tmp_path / "in").read_bytes()
    os.truncate(tmp_path / "in", len(whole) - cut)

    WorkerInput(tmp_path).send([InputLine("b", b"second \xc3\xa9"), InputLine("c", b"third")])

    assert (tmp_path / "in").read_bytes() == b"first\nsecond \xc3\xa9\nthird\n"


@pytest.mark.requirement("conversation:post:torn-log")
def test_a_line_whose_log_entry_was_cut_was_never_sent_and_is_sent_anew(tmp_path: Path) -> None:
    for name, data in first_input([InputLine("a", b"first")]).items():
        (tmp_path / name).write_bytes(data)
    with (tmp_path / "sent").open("ab") as log:
        log.write(b'{"key":"b","te')

    WorkerInput(tmp_path).send([InputLine("b", b"second")])

    assert (tmp_path / "in").read_bytes() == b"first\nsecond\n"
