"""A browser that is logged in, as calls know it."""

from enum import StrEnum

import msgspec


class Role(StrEnum):
    """What somebody may do in the page."""

    OPERATOR = "operator"
    """Everything that the user may do."""
    VIEWER = "viewer"
    """See what runs do; no call that could change something, and nothing of the installation."""


class Login(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One browser that is logged in, as the file keeps it."""

    id: str
    """Names it to people; opens nothing."""
    digest: str
    """SHA-256 of its cookie."""
    role: Role
    port: int
    """The port on which it was made; a cookie is sent there."""
    created_ms: int
    used_ms: int
    browser: str
    """What the browser said it was."""
    until_ms: int | None = None
    """When a link and its login are over, used or not; None = no link began it."""
    is_opened: bool = True
    """False = a link that no browser has opened: the digest is its code's."""
