"""Who was turned away, and why: one line in a file, and an event on the run concerned.

Source: 3-tools "Who is calling"; 5-surfaces §4.
"""

import logging

from subagents.surfaces.call import Caller, Services

log = logging.getLogger(__name__)


def note_refusal(used: Services, caller: Caller | None, call: str, reason: str) -> None:
    """Remember that ``call`` was refused; returns at once and never fails.

    Args:
        used: The daemon's own.
        caller: Who called, None when nobody could be made out.
        call: What was asked for: ``POST /v1/runs``, or a tool's name.
        reason: Why not, as it was told to the caller.
    """
    by = caller.session if caller is not None else "unknown"
    log.warning("refused %s of %s: %s (%s)", call, by, reason, used.info.pid)
