"""``subagents notifications test`` as a person runs it."""

import json
from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.notification_receivers import http_receiver

from subagents.config.paths import Paths


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
        done = home.ok("notifications", "test")
        assert done.out == "desk (ntfy): sent\nphone (secret:phone): sent\n"
        assert len(to.requests) == 2
        to.status = 500
        failed = home.cli("notifications", "test", "phone", "--json")
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
