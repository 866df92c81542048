"""No worker does more than its caller may, whatever programs both are."""

import pytest
from tests.real.permission_table import CALLERS, Caller, broken, row_of, workers

from subagents.runtimes.process import sandbox

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not workers(), reason="no agent program is here: make test-real"),
    pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem())),
]


@pytest.mark.requirement("access:caller-is-ceiling", "access:init-binds")
@pytest.mark.parametrize("caller", CALLERS, ids=lambda each: each.name)
def test_no_worker_does_more_than_its_caller_may(caller: Caller) -> None:
    if not caller.is_here():
        pytest.skip(f"{caller.program or 'claude'} is not installed")

    row = row_of(caller)

    assert broken(caller, row) == []
    if caller.name != "claude, plan":
        assert any(isinstance(could, frozenset) and could for could in row.values()), row
