"""A suite says which promise is broken, and how."""

import pytest

from subagents.extensions.testing.conformance import (
    Broken,
    expect,
    expect_error,
)


@pytest.mark.requirement("store:suite-can-fail")
def test_the_suite_fails_where_a_promise_is_broken() -> None:
    with pytest.raises(Broken, match="number\n  promised: 2\n  found:    1"):
        expect("number", found=1, wanted=2)
    with pytest.raises(Broken, match="quiet: OSError was not raised"):
        expect_error("quiet", OSError, list)
