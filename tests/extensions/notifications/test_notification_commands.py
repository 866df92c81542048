"""``subagents notifications test`` as a person runs it."""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.cli.cli_home import Home, until
from tests.matrix_homeserver import BOT, ROOM, YOU, homeserver
from tests.notification_receivers import http_receiver

from subagents.config.paths import Paths

APART: Final = {"PYTHONPATH": os.devnull}
"""For an interpreter of its own: the fork of one that has sent by apprise lacks its threads."""


def configure(home: Home, text: str) -> None:
    file = Paths.resolve(home.env()).config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.requirement("notifications:test")
def test_it_really_sends_and_says_what_came_back(home: Home, tmp_path: Path) -> None:
    pytest.importorskip("apprise", reason="needs subagents[notify]")
    with http_receiver() as to:
        url = f"ntfy://127.0.0.1:{to.port}/builds"
        (tmp_path / "url").write_text(url)
        configure(
            home,
            f'[secrets.phone]\ncommand = ["cat", "{tmp_path}/url"]\n'
            f'[notifications.desk]\nurl = "{url}"\nreasons = ["failed"]\n'
            '[notifications.phone]\nurl = "secret:phone"\n',
        )
        done = home.ok("notifications", "test", env=APART)
        assert done.out == "desk (ntfy): sent\nphone (secret:phone): sent\n"
        assert len(to.requests) == 2
        to.status = 500
        failed = home.cli("notifications", "test", "phone", "--json", env=APART)
    assert failed.code == 1
    (row,) = json.loads(failed.out)["channels"]
    assert row["sent"] is False
    assert "500" in row["error"]


@pytest.mark.requirement("notifications:test")
def test_a_channel_that_is_not_configured_says_which_are(home: Home) -> None:
    assert "no notifications are configured" in home.cli("notifications", "test").err
    configure(home, '[notifications.desk]\nurl = "desktop"\n')
    refused = home.cli("notifications", "test", "phone")
    assert refused.code == 3
    assert "no channel 'phone' is configured (configured: desk)" in refused.err


@pytest.mark.requirement("notifications:problem")
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("desktop", "neither notify-send nor osascript is on PATH"),
        ("pigeon://roof", "is no address that Apprise understands"),
        ("ntfy://127.0.0.1:1/builds", "phone (ntfy)"),
        ("secret:nobody", "nobody"),
        ("json://127.0.0.1:1/x", "phone (json)"),
    ],
)
def test_a_channel_through_which_nothing_gets_is_said_by_doctor_and_attention(
    home: Home, tmp_path: Path, url: str, problem: str
) -> None:
    pytest.importorskip("apprise", reason="needs subagents[notify]")
    env = {"PATH": f"{tmp_path}:{Path(sys.executable).parent}"}
    for program in ("sh", "bash"):
        (tmp_path / program).symlink_to(f"/bin/{program}")
    configure(home, f'[notifications.phone]\nurl = "{url}"\n')
    assert home.cli("run", "exit 3", env=env).code == 5

    def attention() -> str:
        return home.ok("inbox", "--attention", env=env).out

    until(lambda: "you are not told of runs through phone (" in attention(), "it is said")
    assert problem in attention()
    assert "subagents notifications test phone" in attention()
    checks = home.cli("doctor", "--json", env=env).rows("checks")
    (found,) = [each for each in checks if each["name"] == "notifications"]
    assert found["status"] == "warn"
    assert problem in str(found["detail"])
    assert "subagents notifications test phone" in str(found["fix"])


@pytest.mark.requirement("notifications:test")
def test_the_daemon_sends_it_and_not_whoever_asks(home: Home, tmp_path: Path) -> None:
    pytest.importorskip("apprise", reason="needs subagents[notify]")
    configure(home, '[notifications.desk]\nurl = "desktop"\n')
    for program in ("sh", "bash"):
        (tmp_path / program).symlink_to(f"/bin/{program}")
    without = f"{tmp_path}:{Path(sys.executable).parent}"
    assert home.cli("run", "true", env={"PATH": without}).code == 0
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "notify-send").write_text("#!/bin/sh\n")
    (tmp_path / "more" / "notify-send").chmod(0o755)
    tried = home.cli("notifications", "test", env={"PATH": f"{tmp_path / 'more'}:{without}"})
    assert tried.code == 1
    assert "not sent: neither notify-send nor osascript is on PATH" in tried.out
    # So what whoever asks lacks is no problem.
    home.ok("down", "--yes")
    home.ok("up", env={"PATH": f"{tmp_path / 'more'}:{without}"})
    checks = home.cli("doctor", "--json", env={"PATH": without}).rows("checks")
    assert [each["status"] for each in checks if each["name"] == "notifications"] == ["ok"]


@pytest.mark.requirement("notifications:problem")
def test_a_channel_that_works_is_no_problem_and_one_that_came_later_is_said(home: Home) -> None:
    pytest.importorskip("apprise", reason="needs subagents[notify]")
    with http_receiver() as to:
        phone = f'[notifications.phone]\nurl = "ntfy://127.0.0.1:{to.port}/builds"\n'
        configure(home, phone)
        assert home.cli("run", "exit 3").code == 5
        until(lambda: bool(to.requests), "it is sent")
        configure(home, phone + phone.replace("phone", "later"))
        until(lambda: "1 sent since the daemon started" in home.cli("doctor").out, "it is counted")
        said = home.cli("doctor").out
        tried = home.cli("notifications", "test", env=APART)
        assert (tried.code, tried.out.count(": sent")) == (1, 2)
        assert "later: the daemon was started before this was configured" in tried.err
        assert "phone: the daemon" not in tried.err
        del to.requests[1:]
    assert "later (ntfy): the daemon does not know it" in said
    assert said.splitlines()[-1] == "Notifications of runs to phone (ntfy)."
    assert "channel" not in home.ok("inbox", "--attention").out
    assert len(to.requests) == 1


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
