"""What every list has in addition to its rows: its moment, and how much of it is missing."""

from subagents.api.wire.wire_struct import Time, WireStruct


class Truncated(WireStruct, frozen=True, kw_only=True):
    """There are more than are shown."""

    shown: int = 0
    """So many are here."""
    total: int = 0
    """So many there are; counting ends at 1,000, or at the end of the page."""
    total_is_bound: bool = False
    """There are more than `total`."""


class Listing(WireStruct, frozen=True, kw_only=True):
    """A list as it was at one moment.

    What it shows is not older than ``seq``: who reads a list and then the events behind that number
    misses nothing, and may hear twice of what the list shows already.
    """

    seq: int = 0
    """The newest event that it knows of: `GET /v1/events?after=` goes on behind it."""
    now_at: Time | None = None
    """The daemon's clock, when it was made."""
    truncated: Truncated | None = None
    """What is left out of it here; null = nothing is."""
    next_cursor: str | None = None
    """The `cursor` of the next page; null = there is none, or the list has no pages."""
