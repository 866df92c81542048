"""``secret:NAME`` in a variable names a secret."""

import pytest

from subagents.domain.run.secret_reference import referenced
from subagents.errors import UsageError


@pytest.mark.requirement("environment:secrets")
def test_variables_that_refer_to_secrets_are_told_from_the_others() -> None:
    values: dict[str, object] = {"A": "secret:x.y-Z_1", "B": "no secret:x", "C": 1, "D": "Secret:x"}

    assert referenced(values) == {"A": "x.y-Z_1"}


@pytest.mark.requirement("environment:secrets")
@pytest.mark.parametrize("name", ["", " ", "a b", "../x", "-x", "x" * 65, "x\n"])
def test_a_reference_without_a_name_is_refused_by_its_variable(name: str) -> None:
    with pytest.raises(UsageError, match="API_KEY: what follows `secret:` is no name") as caught:
        referenced({"API_KEY": f"secret:{name}"})
    assert caught.value.hint
