"""``subagents secret``: store one, see whether it is there, never what it is."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home

from subagents.cli.completion import complete
from subagents.cli.main import main
from subagents.config.paths import Paths
from subagents.errors import EXIT_USAGE

NULL = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
FAIL = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
TYPED = (("secret", ""), ("help", "secret", "de"))
VALUE = "horse-battery-42"


def configure(home: Home, place: Path) -> None:
    file = Paths.resolve(home.env()).config_file
    file.parent.mkdir(parents=True)
    file.write_text(f'[secrets.stripe]\ncommand = ["cat", "{place}"]\n')


@pytest.mark.requirement("cli:completion", "cli:bad-input")
def test_commands_below_another_are_offered_and_a_wrong_one_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [[line.partition("\t")[0] for line in complete(typed)] for typed in TYPED]
    assert words == [["set", "check", "delete"], ["delete"]]
    assert main(["secret", "sett"]) == EXIT_USAGE
    assert "there is no command secret 'sett'" in capsys.readouterr().err


@pytest.mark.requirement("environment:secrets")
def test_check_says_where_a_secret_comes_from_and_not_what_it_is(
    home: Home, tmp_path: Path
) -> None:
    place = tmp_path / "secret"
    place.write_text(f"{VALUE}\n")
    configure(home, place)

    done = home.ok("secret", "check", "stripe")
    assert done.out == 'secret "stripe" is there: 16 characters, from cat\n'
    assert "--env VARIABLE=secret:stripe" in done.err
    place.unlink()
    gone = home.cli("secret", "check", "stripe")
    assert gone.code == 1
    assert "ended with exit code 1: cat: " in gone.err
    other = home.cli("secret", "set", "stripe", stdin=VALUE)
    assert other.code == 1
    assert 'secret "stripe" comes from a command: cat' in other.err


@pytest.mark.requirement("environment:secrets")
def test_the_keyring_stores_deletes_and_refuses(home: Home) -> None:
    done = home.ok("secret", "set", "stripe", stdin=VALUE, env=NULL)
    assert done.err == 'secret "stripe": stored in the keyring\n'
    home.ok("secret", "delete", "stripe", env=NULL)
    for action in ("set", "delete", "check"):
        refused = home.cli("secret", action, "stripe", stdin=VALUE, env=FAIL)
        assert refused.code in (1, 2)
        assert 'secret "stripe"' in refused.err
        assert "secrets.stripe.command" in refused.err
        assert "Traceback" not in refused.err
        assert VALUE not in refused.err
    assert "is no name of a secret" in home.cli("secret", "check", "a b").err
