"""What holds of every command of the core holds of those of extensions."""

import pytest
from tests.cli.cli_home import Home
from tests.cli.show.test_show_commands import check_look
from tests.cli.test_unread_options import check_refusal

REFUSED = [
    ("demo --scripted", "--scripted needs --walkaway"),
    ("demo --away 20s", "--away needs --walkaway"),
    ("demo --walkaway --scripted --kill", "--kill is part of --walkaway: leave it out"),
    ("doctor --probe claude --fix", "--fix is not done together with --probe: give one of them"),
    ("cluster drain --timeout 5m", "--timeout needs --wait"),
]


@pytest.mark.requirement("cli:no-option-unread")
@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_an_option_of_an_extension_that_nothing_reads_is_refused_by_its_name(
    home: Home, line: str, message: str
) -> None:
    check_refusal(home, line, message)


@pytest.mark.requirement("cli:json")
@pytest.mark.parametrize("line", ["doctor", "db check"])
def test_every_look_of_an_extension_is_one_json_document_and_also_plain_text(
    shared: Home, line: str
) -> None:
    check_look(shared, line)
