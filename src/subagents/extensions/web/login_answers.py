"""Answers about browsers: who is logged in, and with what."""

from subagents.api.wire.wire_struct import Time, WireStruct


class LoginCode(WireStruct, frozen=True, kw_only=True):
    """What logs a browser in, once."""

    url: str = ""
    """The page with the code behind the `#`, which no browser sends to anybody."""
    role: str = ""
    """`operator` or `viewer`."""
    expires_at: Time = ""
    """When the code stops working; a link's login with it."""
    login_id: str | None = None
    """Names the link in the list of logins; null = it is none."""


class OwnLogin(WireStruct, frozen=True, kw_only=True):
    """With what rights a page calls."""

    login_id: str | None = None
    """Names the login; null = the call came without one."""
    role: str = "operator"
    """`operator`, or `viewer`: may look."""
    csrf: str | None = None
    """What each call that is no GET sends in `X-Subagents-CSRF`; null = nothing is needed."""


class LoginRow(WireStruct, frozen=True, kw_only=True):
    """A browser that is logged in, or a link that can log one in."""

    login_id: str = ""
    """Names it; opens nothing."""
    role: str = ""
    """`operator` or `viewer`."""
    browser: str = ""
    """What it said to be; empty = nobody opened the link yet."""
    created_at: Time = ""
    """When it logged in."""
    used_at: Time = ""
    """When it called last."""
    ends_at: Time = ""
    """When it is over; of a login that no link began, unless it is used before."""
    is_link: bool = False
    """Whether it is a link for somebody else, or what one became."""
    is_opened: bool = True
    """Whether a browser has it; false = a link that still waits for one."""
    is_own: bool = False
    """Whether this call was made with it."""


class LoginList(WireStruct, frozen=True, kw_only=True):
    """Every login and link, the oldest first."""

    logins: list[LoginRow] = []
    """The logins, at most 64."""
    has_links: bool = False
    """Whether links are on: `[web] links` of the daemon's configuration."""
