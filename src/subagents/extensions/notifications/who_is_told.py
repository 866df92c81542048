"""What the configuration says of people and programs that are told: channels, a room, couriers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from subagents.config.settings import Settings
from subagents.errors import ConfigError
from subagents.extensions.notifications.command_courier import CommandCourier
from subagents.extensions.notifications.notification_settings import (
    NotificationChannel,
    ThreadSettings,
)
from subagents.extensions.notifications.webhook_courier import WebhookCourier
from subagents.followers.follower_host import FollowerHost
from subagents.ports import Courier, Exporter
from subagents.runtimes.process.secret_values import ask

if TYPE_CHECKING:  # what few have configured is imported where it is
    from subagents.extensions.notifications.matrix_room import MatrixRoom
    from subagents.extensions.notifications.notifier import Channel


def followers(host: FollowerHost) -> list[Exporter]:
    """See ``Extension.followers``: one for each channel, and one for the room.

    Raises:
        ConfigError: Some of what the room needs is not configured.
    """
    settings, found = host.settings, list[Exporter]()
    channels, room = settings.named(NotificationChannel), room_of(settings, host.environ)
    if channels:
        from subagents.extensions.notifications.notifier import Notifier  # noqa: PLC0415
    for name, each in channels.items():
        notifier = Notifier(
            name=name,
            channel=channel_of(each, settings, host.environ),
            reasons=each.reasons,
            store=host.store,
            file=host.paths.state_dir / f"notification-cursor-{name}.json",
        )
        found.append(notifier)
    if room is not None:
        from subagents.extensions.notifications.chat_threads import ChatThreads, OwnApi  # noqa: PLC0415

        threads = ChatThreads(
            room=room,
            users=settings.table(ThreadSettings).users,
            inward=OwnApi(host.paths.socket),
            store=host.store,
            file=host.paths.state_dir / "chat-threads.json",
        )
        found.append(threads)
    return found


def couriers(host: FollowerHost) -> list[Courier]:
    """See ``Extension.couriers``: the program and the webhook of the configuration."""
    return [
        CommandCourier(host.settings_now, host.environ),
        WebhookCourier(host.settings_now, host.environ),
    ]


def channel_of(
    configured: NotificationChannel, settings: Settings, environ: Mapping[str, str]
) -> "Channel":
    """Where a configured channel leads; nothing is sent."""
    from subagents.extensions.notifications.notification_channels import channel  # noqa: PLC0415

    return channel(
        configured.url, environ, lambda name: ask(name, settings.secrets.get(name), environ)
    )


def room_of(settings: Settings, environ: Mapping[str, str]) -> "MatrixRoom | None":
    """The configured room; nothing is sent. None = there is none.

    Raises:
        ConfigError: Some of what it needs is not configured.
    """
    given = settings.table(ThreadSettings)
    missing = [f"threads.{name}" for name in given.__struct_fields__ if not getattr(given, name)]
    if len(missing) == len(given.__struct_fields__):
        return None
    if given.homeserver is None or given.room is None or given.token is None or missing:
        raise ConfigError(
            f"[threads] needs {', '.join(missing)}, too",
            hint="add them, or remove [threads]; to try it: subagents notifications test --threads",
            details={"keys": missing},
        )
    from subagents.extensions.notifications.matrix_room import MatrixRoom  # noqa: PLC0415

    return MatrixRoom(
        given.homeserver,
        given.room,
        given.token,
        lambda name: ask(name, settings.secrets.get(name), environ),
    )
