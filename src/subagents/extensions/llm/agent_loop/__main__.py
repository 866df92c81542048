"""``python -m subagents.extensions.llm.agent_loop ASSIGNMENT``: one turn of an agent loop.

Importing is most of what a turn costs besides its model, so it begins here, as little as can be.
"""

import gc
import os
import sys
from typing import Final, NoReturn

LEFT_OUT: Final = ("httpx._main",)
"""A command line, which the library does without where `rich` is missing: it takes 80 modules."""


def run_and_exit() -> NoReturn:
    """Do the turn and end the process with its exit code."""
    # Until all is imported; half a million objects would be looked through a dozen times.
    gc.disable()
    sys.modules.update(dict.fromkeys(LEFT_OUT))  # type: ignore[arg-type]  # None = not to be had
    from subagents.extensions.llm.agent_loop.assigned_turn import main  # noqa: PLC0415

    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Taking a hundred megabytes of modules apart again takes half a second of everybody's time.
    os._exit(code)


if __name__ == "__main__":
    run_and_exit()
