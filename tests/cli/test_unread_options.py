"""An option that nothing would read is refused before anything is done."""

import pytest
from tests.cli.cli_home import Home

REFUSED = [
    ("tree last --archived", "--archived is about a search, not about a run that is named"),
    ("log last --follow --summary", "--follow and --summary exclude each other"),
    ("status last --mine", "name runs or search for them, not both"),
    ("schedule add n @daily docker ps --format x", "there is no option --format"),
    ("schedule add n @daily true --jq .x", "there is no option --jq"),
    ("schedule add n @daily --plan x.yaml --verify f", "--plan starts the runs of its file"),
    ("schedule add n @daily --plan x.yaml --retry 2", "--plan starts the runs of its file"),
    ("run true --verify-existing", "--verify-existing is about the files of --verify"),
    ("run true --min-items 3", "--min-items describes the file of a --verify before it"),
    ("continue last more --verify f", "there is no option --verify"),
]


def check_refusal(home: Home, line: str, message: str) -> None:
    done = home.cli(*line.split())
    assert (done.code, done.out) == (2, "")
    assert f"subagents: {message}" in done.err
    assert not [*home.root.rglob("*.db")], "nothing was started"


REFUSED_BY_THE_DAEMON = [
    ("list --limit", "-1"),
    ("list --offset", "-1"),
    ("plan list --limit", "101"),
    ("log last --after-seq", "-1"),
    ("log last --attempt", "0"),
    ("log last --tail", "-1"),
    ("inbox --limit", "0"),
    ("steer last more --add-tokens", "0"),
    ("steer last more --add-cost", "-1"),
    ("ui --link --for", "soon"),
]


@pytest.mark.requirement("cli:bad-input")
@pytest.mark.parametrize(
    ("line", "value"), REFUSED_BY_THE_DAEMON, ids=[line for line, _ in REFUSED_BY_THE_DAEMON]
)
def test_what_the_daemon_refuses_is_told_by_the_flag(shared: Home, line: str, value: str) -> None:
    shared.ok("run", "true")
    flag = line.rpartition(" ")[2]
    done = shared.cli(*line.split(), value, "--json")
    assert done.code == 2
    assert str(done.json["message"]).startswith(f"{flag} must be")
    details = done.json["details"]
    assert isinstance(details, dict)
    assert details["field"] == flag


@pytest.mark.requirement("cli:no-option-unread")
@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_an_option_that_nothing_reads_is_refused_by_its_name(
    home: Home, line: str, message: str
) -> None:
    check_refusal(home, line, message)
