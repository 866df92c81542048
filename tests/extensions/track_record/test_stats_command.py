"""``stats --attempts``, and what ``agents`` has of it: plain text, and one JSON document."""

import json

import pytest
from tests.cli.cli_home import Home


@pytest.mark.requirement("cli:json")
@pytest.mark.parametrize("more", [(), ("command", "--by", "tag", "--days", "1")])
def test_statistics_are_one_json_document_and_also_a_table(
    shared: Home, more: tuple[str, ...]
) -> None:
    shared.ok("run", "echo seen", "--tag", "x")
    done = shared.ok("stats", "--attempts", *more, "--json")
    assert json.loads(done.out)["stats"]
    assert done.out.count("\n") == 1
    plain = shared.ok("stats", "--attempts", *more)
    assert plain.out.split()[:3] == ["TAG" if more else "AGENT", "ATTEMPTS", "SUCCESS"]
    assert "\x1b" not in plain.out + plain.err
    no_days = shared.cli("stats", "--attempts", "--days", "0")
    assert (no_days.code, "days" in no_days.err) == (2, True)


@pytest.mark.requirement("cli:look")
def test_an_agent_is_shown_with_what_its_attempts_came_to(shared: Home) -> None:
    shared.ok("run", "echo seen")
    assert "success 100 %" in shared.ok("agents", "command").out
    shown = json.loads(shared.ok("agents", "command", "--json").out)
    assert shown["record"]["success"]["rate"] == 1.0
