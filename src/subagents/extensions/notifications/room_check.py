"""``notifications test --threads``: whether a session with a thread would be seen in the room."""

import os
import uuid

from subagents.cli import output
from subagents.cli.connection import paths
from subagents.errors import EXIT_FAILED, EXIT_OK, NotFound
from subagents.extensions.notifications.notification_settings import ThreadSettings


def write_test(*, json: bool) -> int:
    """Write into the room of [threads] in your subagents.toml, and join it where that is needed.

    The daemon reads its replies once it was started again.
    """
    from subagents.config.layers import load  # noqa: PLC0415
    from subagents.extensions.notifications.who_is_told import room_of  # noqa: PLC0415
    from subagents.followers.journal_export import (  # noqa: PLC0415
        ReceiverRefused,
        ReceiverUnavailable,
    )

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
