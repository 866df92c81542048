"""What ``cleanup: "delete"`` takes out of a run, and out of its journal in the same way."""

import msgspec
import pytest
from tests.builders import Life

from subagents.domain.lifecycle.erasure import DELETED, erased_event
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import Event, decode_event, encode_event
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Cleanup, RunSpec

SECRET = RunSpec(task="the secret word is plugh", label="calm", cleanup=Cleanup.DELETE)


def ended() -> Life:
    life = Life.begin(SECRET).start().steer("say plugh, too").result("kept").exit()
    return life.deliver().clean_up(erased=True)


@pytest.mark.requirement("cleanup:erases-the-task")
def test_an_erased_journal_has_nothing_its_worker_was_told_and_folds_to_its_run() -> None:
    life = ended()
    stored = [encode_event(erased_event(event)) for event in life.journal]
    folded: Run | None = None
    for data in stored:
        folded = reduce(folded, decode_event(data)).run

    assert folded == life.run
    assert b"plugh" not in b"".join([*stored, msgspec.json.encode(life.run)])
    assert (life.run.spec.task, life.run.result) == (DELETED, "kept")
    assert life.run.times.erased_at_ms == life.at_ms


@pytest.mark.requirement("cleanup:erases-the-task")
def test_a_journal_from_before_tasks_were_erased_folds_to_the_run_that_kept_its_task() -> None:
    life = Life.begin(SECRET).start().result("kept").exit().deliver()
    old: Event = decode_event(b'{"type":"CleanedUp","atMs":%d}' % life.at_ms)
    life.apply(old)

    assert (life.run.spec.task, life.run.times.erased_at_ms) == (SECRET.task, None)
