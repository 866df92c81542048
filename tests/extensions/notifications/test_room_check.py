"""``subagents notifications test --threads`` as a person runs it."""

import json

import pytest
from tests.cli.cli_home import Home
from tests.extensions.notifications.test_notification_commands import configure
from tests.matrix_homeserver import BOT, ROOM, YOU, homeserver


def section(url: str, *, token: str = "token") -> str:  # noqa: S107 - the test's own
    return (
        f'[threads]\nhomeserver = "{url}"\nroom = "{ROOM}"\ntoken = "{token}"\nusers = ["{YOU}"]\n'
    )


@pytest.mark.requirement("threads:chat:test")
def test_it_writes_into_the_room_and_says_as_whom(home: Home) -> None:
    with homeserver() as server:
        configure(home, section(server.url))
        done = home.ok("notifications", "test", "--threads")

        assert done.out == f"{ROOM} at {server.url}: sent as {BOT}\n"
        assert YOU in server.texts()[0]


@pytest.mark.requirement("threads:chat:test")
def test_a_wrong_token_and_an_encrypted_room_are_said(home: Home) -> None:
    with homeserver() as server:
        configure(home, section(server.url, token="wrong"))
        wrong = home.cli("threads", "test", "--json")
        configure(home, section(server.url))
        server.is_encrypted = True
        encrypted = home.cli("threads", "test")

    assert (wrong.code, encrypted.code) == (1, 1)
    assert "401 M_UNKNOWN_TOKEN" in json.loads(wrong.out)["error"]
    assert "the room is encrypted" in encrypted.out


@pytest.mark.requirement("threads:chat:test")
def test_what_is_not_configured_is_named(home: Home) -> None:
    assert "no chat room is configured" in home.cli("threads", "test").err
    configure(home, '[threads]\nroom = "!r:example.org"\n')
    refused = home.cli("threads", "test")

    assert refused.code == 2
    assert "[threads] needs threads.homeserver, threads.token, threads.users, too" in refused.err
