"""``subagents secret``: store one, see whether it is there, never what it is."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home

from subagents.config.paths import Paths

NULL = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
FAIL = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
VALUE = "horse-battery-42"


def configure(home: Home, place: Path) -> None:
    file = Paths.resolve(home.env()).config_file
    file.parent.mkdir(parents=True)
    file.write_text(f'[secrets.stripe]\ncommand = ["cat", "{place}"]\n')


@pytest.mark.requirement("environment:secrets")
def test_check_says_where_a_secret_comes_from_and_not_what_it_is(
    home: Home, tmp_path: Path
) -> None:
    place = tmp_path / "secret"
    place.write_text(f"{VALUE}\n")
    configure(home, place)

    done = home.ok("secret", "stripe", "--check")
    assert done.out == 'secret "stripe" is there: 16 characters, from cat\n'
    assert "--env VARIABLE=secret:stripe" in done.err
    place.unlink()
    gone = home.cli("secret", "stripe", "--check")
    assert gone.code == 1
    assert "ended with exit code 1: cat: " in gone.err
    other = home.cli("secret", "stripe", stdin=VALUE)
    assert other.code == 1
    assert 'secret "stripe" comes from a command: cat' in other.err


@pytest.mark.requirement("environment:secrets")
def test_the_keyring_stores_deletes_and_refuses(home: Home) -> None:
    done = home.ok("secret", "stripe", stdin=VALUE, env=NULL)
    assert done.err == 'secret "stripe": stored in the keyring\n'
    home.ok("secret", "stripe", "--delete", env=NULL)
    typo = home.cli("secret", "sett", stdin=VALUE, env=NULL)
    assert (typo.code, 'Store a secret named "sett"?' in typo.err) == (2, True)
    assert "subagents secret stripe" in typo.err
    home.ok("secret", "sett", "--yes", stdin=VALUE, env=NULL)
    for action in ("set", "delete", "check"):
        refused = home.cli("secret", action, "stripe", stdin=VALUE, env=FAIL)
        assert refused.code in (1, 2)
        assert 'secret "stripe"' in refused.err
        assert "secrets.stripe.command" in refused.err
        assert "Traceback" not in refused.err
        assert VALUE not in refused.err
    assert "is no name of a secret" in home.cli("secret", "a b", "--check").err
