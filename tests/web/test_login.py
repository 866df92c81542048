"""Logging in and out, in a real browser."""

import pytest
from tests.e2e.live_home import LiveHome
from tests.web.conftest import LOG_IN, Browsers

CALL = """
async ([method, path, headers]) => {
  const answer = await fetch(path, {method, headers});
  return answer.status;
}
"""


@pytest.mark.requirement("login:code")
def test_a_code_logs_one_browser_in_and_no_other(home: LiveHome, browsers: Browsers) -> None:
    page = browsers.context().new_page()
    address, _, code = browsers.address().partition("#k=")
    page.goto(address)

    assert page.evaluate(CALL, ["GET", "/v1/runs", {}]) == 401
    first = page.evaluate(LOG_IN, code)
    assert (first["status"], first["role"]) == (200, "operator")
    assert page.evaluate(CALL, ["GET", "/v1/runs", {}]) == 200

    other = browsers.context().new_page()
    other.goto(address)
    assert other.evaluate(LOG_IN, code)["status"] == 401
    assert other.evaluate(CALL, ["GET", "/v1/runs", {}]) == 401
