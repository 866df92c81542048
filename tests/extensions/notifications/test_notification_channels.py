"""Each kind of channel against a real receiver on this machine."""

import re
import sys
from pathlib import Path

import pytest
from tests.notification_receivers import http_receiver, mail_receiver

from subagents.errors import UsageError
from subagents.extensions.notifications.notification_channels import channel
from subagents.extensions.notifications.notifier import Notification
from subagents.followers.journal_export import ReceiverUnavailable
from subagents.installation import extra_command

pytest.importorskip("apprise", reason="needs subagents[notify]")
NOTICE = Notification("build: error", "it broke\nsubagents why r-1", "failure")


def no_secret(name: str) -> str:
    raise UsageError(f'secret "{name}" is not in the keyring')


def send(url: str) -> None:
    channel(url, {}, no_secret).send(NOTICE)


@pytest.mark.requirement("notifications:channels")
def test_ntfy_gets_title_and_text() -> None:
    with http_receiver() as to:
        send(f"ntfy://127.0.0.1:{to.port}/builds")
    assert "build: error" in to.requests[0].body
    assert "it broke\\nsubagents why r-1" in to.requests[0].body


@pytest.mark.requirement("notifications:channels")
def test_a_service_is_told_of_a_failure_as_one() -> None:
    with http_receiver() as to:
        send(f"json://127.0.0.1:{to.port}/")
    assert '"type": "failure"' in to.requests[0].body


@pytest.mark.requirement("notifications:channels")
def test_slack_gets_title_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as to:
        slack = "apprise.plugins.slack.NotifySlack.webhook_url"
        monkeypatch.setattr(slack, f"http://127.0.0.1:{to.port}/services")
        to.answer = "ok"
        send("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/")
    assert to.requests[0].path == "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    assert "build: error" in to.requests[0].body
    assert "it broke" in to.requests[0].body


@pytest.mark.requirement("notifications:channels")
def test_a_matrix_room_gets_title_and_text() -> None:
    with http_receiver() as to:
        to.answer = '{"room_id": "!abc:localhost", "event_id": "$1", "user_id": "@me:localhost"}'
        send(f"matrix://token@127.0.0.1:{to.port}/!abc:localhost?discovery=no")
    sent = [each for each in to.requests if "m.room.message" in each.path]
    assert sent[0].authorization == "Bearer token"
    assert "build: error" in sent[0].body
    assert "it broke" in sent[0].body


@pytest.mark.requirement("notifications:channels")
def test_mail_goes_to_a_real_server() -> None:
    with mail_receiver() as (port, letters):
        send(f"mailto://127.0.0.1:{port}?from=me@example.org&to=you@example.org&format=text")
    assert letters[0]["Subject"] == "build: error"
    text = letters[0].get_payload(decode=True)
    assert isinstance(text, bytes)
    assert b"it broke" in text


@pytest.mark.requirement("notifications:channels")
def test_the_desktop_gets_texts_as_arguments(tmp_path: Path) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/seen\n')
    program.chmod(0o755)

    channel("desktop", {"PATH": f"{tmp_path}:/usr/bin:/bin"}, no_secret).send(
        Notification("--version", "$(reboot)")
    )

    assert (tmp_path / "seen").read_text() == "--app-name=subagents|--|--version|$(reboot)|"


@pytest.mark.requirement("notifications:channels")
def test_a_desktop_that_cannot_show_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(ReceiverUnavailable, match="libnotify"):
        channel("desktop", {"PATH": str(tmp_path)}, no_secret).send(NOTICE)
    program = tmp_path / "notify-send"
    program.write_text("#!/bin/sh\necho no bus >&2; exit 3\n")
    program.chmod(0o755)
    with pytest.raises(ReceiverUnavailable, match="exit code 3: no bus"):
        channel("desktop", {"PATH": str(tmp_path)}, no_secret).send(NOTICE)


@pytest.mark.requirement("notifications:channels")
def test_what_a_service_answers_is_the_reason_and_holds_no_address() -> None:
    with http_receiver() as to:
        to.status = 403
        with pytest.raises(ReceiverUnavailable) as refused:
            send(f"ntfy://tk_horse_battery@127.0.0.1:{to.port}/builds")
    assert "403" in str(refused.value)
    assert "horse_battery" not in str(refused.value)


@pytest.mark.requirement("notifications:channels")
def test_an_address_can_be_a_secret_by_name() -> None:
    with http_receiver() as to:
        url = f"ntfy://127.0.0.1:{to.port}/builds"
        service = channel("secret:phone", {}, {"phone": url}.__getitem__)
        service.send(NOTICE)
    assert len(to.requests) == 1
    assert service.where == "secret:phone"
    with pytest.raises(ReceiverUnavailable, match="is not in the keyring"):
        send("secret:phone")


@pytest.mark.requirement("notifications:channels", "notifications:problem")
@pytest.mark.parametrize(
    "url",
    [
        "pigeon://roof",
        "no address at all",
        "ntfy:/127.0.0.1/builds",
        "slack://one-of-three",
        "tgram://",
        "https//hooks.example.org",
        "mailto://",
    ],
)
def test_an_address_that_nobody_understands_is_a_problem_before_anything_is_sent(url: str) -> None:
    service = channel(url, {}, no_secret)
    assert "is no address that Apprise understands" in (service.problem() or "")
    with pytest.raises(ReceiverUnavailable, match="no address that Apprise understands"):
        service.send(NOTICE)


@pytest.mark.requirement("notifications:channels", "notifications:problem")
def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    service = channel("ntfy://127.0.0.1/builds", {}, no_secret)
    assert extra_command("notify") in (service.problem() or "")
    with pytest.raises(ReceiverUnavailable, match=re.escape(extra_command("notify"))):
        service.send(NOTICE)


@pytest.mark.requirement("notifications:problem")
@pytest.mark.parametrize(
    ("url", "path", "problem"),
    [
        ("desktop", "", "libnotify"),
        ("secret:phone", "/usr/bin", "is not in the keyring"),
        ("ntfy://ntfy.sh/builds", "", None),
        ("json://127.0.0.1:1/", "", None),
        ("mailtos://me:pass@example.org?to=you@example.org", "", None),
    ],
)
def test_a_problem_is_said_without_sending(url: str, path: str, problem: str | None) -> None:
    found = channel(url, {"PATH": path}, no_secret).problem()
    assert found is None if problem is None else problem in (found or "")
