"""The daemon, but that it forgets runs after a minute: a soak cannot wait for days.

It is what ``python -m subagents`` is, with a retention that no configuration may ask for.
"""

import sys
from typing import Any

from subagents.cli.main import main
from subagents.domain.run.values import replace
from subagents.engine.runs.sweep import Sweep

DAYS = 1 / 24 / 60

_as_it_is = Sweep.__init__


def _hasty(self: Sweep, *given: Any, **named: Any) -> None:
    _as_it_is(self, *given, **named)
    settings = self._settings
    retention = replace(settings.retention, result_retention_days=DAYS)
    self._settings = replace(settings, retention=retention)


if __name__ == "__main__":
    Sweep.__init__ = _hasty  # type: ignore[method-assign]
    sys.exit(main())
