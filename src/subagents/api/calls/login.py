"""A browser that is logged in, as calls know it."""

from enum import StrEnum
from typing import Final

import msgspec

IDLE_MS: Final = 12 * 3_600_000
"""A login that is not used for so long is over."""


class Role(StrEnum):
    """What somebody may do in the page."""

    OPERATOR = "operator"
    """Everything that the user may do."""
    VIEWER = "viewer"
    """Look; no call that could change something."""


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

    @property
    def ends_ms(self) -> int:
        """When it is over unless it is used before."""
        return self.used_ms + IDLE_MS
