"""Answers about browsers: who is logged in, and with what."""

from subagents.api.wire.wire_struct import Time, WireStruct


class LoginCode(WireStruct, frozen=True, kw_only=True):
    """What logs a browser in, once."""

    url: str = ""
    """The page with the code behind the `#`, which no browser sends to anybody."""
    role: str = ""
    """`operator` or `viewer`."""
    expires_at: Time = ""
    """When the code stops working."""


class OwnLogin(WireStruct, frozen=True, kw_only=True):
    """With what rights a page calls."""

    login_id: str | None = None
    """Names the login; null = the call came without one."""
    role: str = "operator"
    """`operator`, or `viewer`: may look."""
    csrf: str | None = None
    """What each call that is no GET sends in `X-Subagents-CSRF`; null = nothing is needed."""


class LoginRow(WireStruct, frozen=True, kw_only=True):
    """A browser that is logged in."""

    login_id: str = ""
    """Names it; opens nothing."""
    role: str = ""
    """`operator` or `viewer`."""
    browser: str = ""
    """What it said to be."""
    created_at: Time = ""
    """When it logged in."""
    used_at: Time = ""
    """When it called last."""
    ends_at: Time = ""
    """When the login is over unless it is used before."""
    is_own: bool = False
    """Whether this call was made with it."""


class LoginList(WireStruct, frozen=True, kw_only=True):
    """Every browser that is logged in, the oldest login first."""

    logins: list[LoginRow] = []
    """The logins, at most 64."""
