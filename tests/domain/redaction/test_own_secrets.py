"""Values that a run's worker is given are secrets in every way in which it may print them."""

import base64
from urllib.parse import quote

import pytest

from subagents.domain.redaction.own_secrets import own_secrets
from subagents.domain.redaction.redact import redact
from subagents.domain.redaction.secret_spans import REDACTED

VALUE = "green horse & stable/42"


@pytest.mark.requirement("redact:own-coded")
def test_a_runs_own_secret_is_found_in_base64_and_in_a_url() -> None:
    own = own_secrets({"env": {"APP_TOKEN": VALUE}})
    coded = base64.b64encode(f"{VALUE}\n".encode()).decode()

    assert (
        redact(f"https://h/?q={quote(VALUE, safe='')}&r=1", own) == f"https://h/?q={REDACTED}&r=1"
    )
    assert coded[:24] not in redact(f"{coded} behind", own)
    assert redact(f"{coded} behind", own).endswith(" behind")


@pytest.mark.requirement("environment:redacted")
def test_a_secret_by_name_is_its_value_and_not_the_reference_to_it() -> None:
    own = own_secrets(
        {"env": {"API_TOKEN": "secret:stripe"}}, given={"A": "secret:other"}, values=[VALUE]
    )

    assert redact(f"secret:stripe is {VALUE}", own) == f"secret:stripe is {REDACTED}"


@pytest.mark.requirement("redact:own-named")
def test_a_variable_that_an_option_names_is_a_secret_whatever_its_name() -> None:
    environ = {"MY_MODEL_ACCESS": "purple elephant", "OTHER": "green horse"}

    own = own_secrets({"api_key_env": "MY_MODEL_ACCESS", "pass_env": ["OTHER"]}, environ)

    assert redact("purple elephant, green horse", own) == f"{REDACTED}, green horse"
    assert own_secrets({"api_key_env": "NO_SUCH"}, environ) == ()
    assert own_secrets({"api_key_env": "MY_MODEL_ACCESS"}) == ()
