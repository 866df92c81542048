"""One line of ``doctor``."""

from typing import Final

import msgspec

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at; ``fix`` is what to do when it is not ok."""

    name: str
    status: str
    detail: str
    fix: str | None = None
