"""A run as the A2A task that a client is told of."""

import pytest
from tests.builders import Life

from subagents.domain.run.spec import RunSpec
from subagents.extensions.a2a.a2a_tasks import task_of


@pytest.mark.requirement("a2a:get")
@pytest.mark.parametrize("code", [0, 1])
def test_a_task_that_has_ended_stays_the_same_while_its_result_is_handed_over(code: int) -> None:
    life = Life.begin(RunSpec(task="greet")).start().result("hello").exit(code)
    assert life.run.is_settled
    at_its_end = task_of(life.run, "hello")

    handed_over = life.pass_ms(5_000).deliver().clean_up().run

    assert task_of(handed_over, "hello") == at_its_end
