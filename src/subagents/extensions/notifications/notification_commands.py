"""``notifications test``: whether a person would hear of it."""

import os
import uuid
from typing import Annotated

from subagents.cli import output
from subagents.cli.connection import paths, session
from subagents.cli.flags import Json, Parameter, refusal
from subagents.client.client import Client, segment
from subagents.client.daemon_start import answers
from subagents.config.layers import load
from subagents.errors import EXIT_FAILED, EXIT_OK, NotFound
from subagents.extensions.notifications.notification_settings import (
    NotificationChannel,
    ThreadSettings,
)
from subagents.extensions.notifications.notifier import test_of
from subagents.extensions.notifications.who_is_told import channel_of, room_of
from subagents.followers.journal_export import ReceiverRefused, ReceiverUnavailable


def send_test(
    channel: Annotated[str | None, Parameter(help="Its name; all when left out.")] = None,
    /,
    *,
    threads: Annotated[
        bool, Parameter(help="Write into the chat room of [threads] instead.")
    ] = False,
    json: Json = False,
) -> int:
    """Send a real notification through the channels of your subagents.toml.

    The daemon sends it, as it would a real one; without a daemon it is sent from here.

    For example:

        subagents notifications test

        subagents notifications test phone

        subagents notifications test --threads
    """
    if threads:
        if channel is not None:
            raise refusal("--threads", f"and {channel}: give one of them")
        return _write_test(json=json)

    settings = load(None, os.environ, paths=paths()).settings
    configured = settings.named(NotificationChannel)
    if not configured or (channel is not None and channel not in configured):
        known = ", ".join(sorted(configured)) or "none"
        raise NotFound(
            "no notifications are configured"
            if channel is None
            else f"no channel {channel!r} is configured (configured: {known})",
            hint='add [notifications.desk] with url = "desktop" (or "ntfy://ntfy.sh/TOPIC", …) to '
            f"{paths().config_file}",
        )
    listening, rows = _known_to_the_daemon(), list[dict[str, object]]()
    for name in [channel] if channel is not None else sorted(configured):
        to = channel_of(configured[name], settings, os.environ)
        is_known = listening is None or f"{name} ({to.where})" in listening
        problem: object = None
        try:
            if listening is not None and is_known:
                problem = _sent_by_the_daemon(name)
            else:
                to.send(test_of(name))
        except (ReceiverRefused, ReceiverUnavailable) as error:
            problem = str(error)
        row = {"channel": name, "to": to.where, "sent": problem is None, "error": problem}
        rows.append({**row, "daemonSends": is_known})
        if not json:
            end = "sent" if problem is None else f"not sent: {problem}"
            output.line(f"{name} ({to.where}): {end}")
            if not is_known:
                why = "the daemon was started before this was configured, and sends nothing there"
                output.note(f"{name}: {why}: subagents down --yes && subagents up")
    if json:
        output.document({"channels": rows})
    return EXIT_OK if all(row["sent"] and row["daemonSends"] for row in rows) else EXIT_FAILED


def _sent_by_the_daemon(name: str) -> object:
    """Why not; None = it was sent."""
    with Client(paths().socket, session=session()) as client:
        path = f"/v1/notifications/{segment(name)}/test"
        return client.post(path, timeout_s=60).get("problem")


def _known_to_the_daemon() -> set[str] | None:
    """The channels that the running daemon sends through; None = none runs."""
    if not answers(paths().socket):
        return None
    with Client(paths().socket, session=session()) as client:
        listed = client.get("/v1/diagnostics").get("notifications")
    return {str(each.get("to")) for each in listed} if isinstance(listed, list) else None


def _write_test(*, json: bool) -> int:
    """Write into the room of [threads] in your subagents.toml, and join it where that is needed.

    The daemon reads its replies once it was started again.
    """

    settings = load(None, os.environ, paths=paths()).settings
    room = room_of(settings, os.environ)
    if room is None:
        raise NotFound(
            "no chat room is configured",
            hint="add [threads] with homeserver, room, token and users to your subagents.toml",
        )
    me = problem = None
    try:
        me = room.me
        if room.is_encrypted():
            problem = "the room is encrypted, which the bot cannot read; make one without"
        else:
            heard = ", ".join(settings.table(ThreadSettings).users)
            text = f"A test of subagents: it works. Whose replies count: {heard}."
            content = {"msgtype": "m.notice", "body": text, "m.mentions": {}}
            room.send("m.room.message", content, transaction=f"test.{uuid.uuid4().hex}")
    except (ReceiverRefused, ReceiverUnavailable) as error:
        problem = str(error)
    finally:
        room.close()
    if json:
        sent = problem is None
        output.document({"to": room.where, "as": me, "sent": sent, "error": problem})
    elif problem is None:
        output.line(f"{room.where}: sent as {me}")
    else:
        output.line(f"{room.where}: not sent: {problem}")
    return EXIT_OK if problem is None else EXIT_FAILED
