"""The words of ``subagents mcp``, which it reads without a parser."""

import pytest

from subagents.cli.main import main
from subagents.errors import EXIT_USAGE
from subagents.extensions.mcp.bridge.handshake import PROJECT_VARIABLE
from subagents.extensions.mcp.bridge.mcp_command import daemon_of


@pytest.mark.requirement("mcp:bridge:session")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--session"], "--session needs a name"),
        (["--ceiling"], "--ceiling needs read, write or full"),
        (["--json", "x"], "unknown argument '--json'"),
        (["serve"], "unknown argument 'serve'"),
    ],
)
def test_its_words_reach_it_unread_also_behind_a_flag_of_every_command(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--color", "never", "mcp", *words]) == EXIT_USAGE
    shown = capsys.readouterr()
    assert said in shown.err + shown.out
    assert "subagents mcp [--session NAME]" in shown.err + shown.out


@pytest.mark.requirement("mcp:bridge:session")
def test_what_is_below_it_is_no_word_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--help"]) == 0
    assert "or subagents mcp COMMAND" in capsys.readouterr().out


@pytest.mark.requirement("mcp:bridge:session")
def test_the_server_starts_in_a_directory_whose_name_is_no_utf_8() -> None:
    environ = {PROJECT_VARIABLE: "/nowhere/\udcff", "SUBAGENTS_HOME": "/nowhere/home"}
    daemon = daemon_of(environ, None)

    assert daemon.headers["x-subagents-cwd"] == "/nowhere/%FF"
