"""`[notifications.<name>]` and `[threads]` of `subagents.toml`."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from subagents.config.settings import Section, Url

CHANNEL_PATTERN: Final = (
    r"^(desktop|[a-z][a-z0-9+.-]*://\S+|secret:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})$"
)

Room = Annotated[
    str,
    Meta(
        pattern=r"^[!#]\S{1,254}$",
        extra={"words": "a room's id, which begins with !, or an alias #NAME:SERVER"},
    ),
]
MatrixUser = Annotated[str, Meta(pattern=r"^@[^\s:]+:\S+$", extra={"words": "@NAME:SERVER"})]
AccessToken = Annotated[
    str,
    Meta(
        pattern=r"^[!-~]{1,4096}$",
        extra={"words": "an access token, or secret:NAME", "secret": True},
    ),
]


class NotificationReason(StrEnum):
    """What a person may want to be told of."""

    NEEDS_YOU = "needs_you"
    """A run asks something, reports a blocker, or wants more than its caller may give."""
    FAILED = "failed"
    """A run ended with an error, at its deadline, or was lost."""
    ALL_DONE = "all_done"
    """A caller's last live run has ended."""


class NotificationChannel(Section, frozen=True):
    """`[notifications.<name>]`: read once, when the daemon starts; the user's own file only."""

    TABLE: ClassVar = "notifications"

    url: Annotated[
        str,
        Meta(
            pattern=CHANNEL_PATTERN,
            extra={
                "words": "desktop, an address such as ntfy://ntfy.sh/TOPIC, or secret:NAME",
                "secret": True,
                "hidden": True,
            },
            description="Where to: `desktop`, an address of Apprise's such as "
            "`ntfy://ntfy.sh/TOPIC` (needs subagents[notify]), or `secret:NAME`, a secret that is "
            "such an address. Only from your own file.",
        ),
    ]
    reasons: Annotated[
        Annotated[tuple[NotificationReason, ...], Meta(min_length=1)],
        Meta(description="What of: a run needs you, a run failed, a caller's last run ended."),
    ] = tuple(NotificationReason)


class ThreadSettings(Section, frozen=True):
    """`[threads]`: read once, when the daemon starts; the user's own file only.

    A room of Matrix in which each session with `thread: true` has a thread; all four or none.
    """

    TABLE: ClassVar = "threads"

    homeserver: Annotated[
        Url | None,
        Meta(
            description="The Matrix homeserver's address, such as `https://matrix.example.org`; "
            "unset = no chat. Only from your own file."
        ),
    ] = None
    room: Annotated[
        Room | None,
        Meta(description="The room's id or `#alias:server`; it must not be encrypted."),
    ] = None
    token: Annotated[
        AccessToken | None,
        Meta(
            description="The bot's access token; better `secret:NAME`, a secret that is one.",
            extra={"hidden": True},
        ),
    ] = None
    users: Annotated[
        tuple[MatrixUser, ...],
        Meta(description="Whose replies count, with your rights: `@you:server`."),
    ] = ()
