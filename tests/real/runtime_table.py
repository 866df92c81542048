"""Runs every cell for every program that is here, and writes docs/runtime-table.md.

python tests/e2e/runtime_table.py [--write] [BED...]
"""

import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.e2e.acp_beds import ACP  # noqa: E402 - found only now
from tests.e2e.runtime_beds import CLAUDE, LLM, Bed  # noqa: E402
from tests.e2e.runtime_cells import CELLS, filled  # noqa: E402
from tests.real.acp_programs import BEDS as AGENTS  # noqa: E402
from tests.real.codex_bed import CODEX  # noqa: E402

BEDS: Final[dict[str, Bed]] = {bed.name: bed for bed in (CLAUDE, CODEX, *AGENTS.values(), LLM, ACP)}
PAGE: Final = HERE.parents[1] / "docs" / "runtime-table.md"
NOT_RUN: Final = "not run"

HEAD: Final = """# What each runtime was observed to do

Made by `make runtime-table`: each cell is a real run of the real program, behind a real daemon,
with a scripted model in place of a language model. {when}; {where}.

- **edit**, **command**, **ask**, **spawn**, **no deliverable**: the five tasks: write a file that a
  contract checks; run a command; ask the requester and use the answer; spawn a child and pass on
  its result; claim "done" without the file (must end as `verification_failed`).
- **steer**: where a message sent during a turn was read. **interrupt**, **cancel**: the time until
  no process of the run was left, including its shell child.
- **resume**: a message to the ended session was answered from the earlier conversation.
  **scope**: a denied shell did not run, nor in a child that it spawned.
- **usage**: what was counted. **daemon killed**: kill -9 in the middle of a turn; one attempt, one
  result, nothing asked twice.

`no` = the runtime does not claim it (see [runtimes](runtimes.md)); `FAILED` = it claims it, but did
not do it.
"""


def page(rows: dict[str, dict[str, str]], seconds: float) -> str:
    """The Markdown page."""
    when = time.strftime("%Y-%m-%d", time.gmtime())
    where = f"Python {platform.python_version()}, {platform.system()}, {seconds:.0f} s in all"
    lines = [HEAD.format(when=when, where=where)]
    lines.append("| program | " + " | ".join(CELLS) + " |")
    lines.append("|---" * (len(CELLS) + 1) + "|")
    for name, cells in rows.items():
        shown = (cells.get(each, "").replace("|", "\\|") for each in CELLS)
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print (and with ``--write`` keep) the table of the named programs, or of all."""
    wanted = [each for each in arguments if not each.startswith("-")] or list(BEDS)
    rows: dict[str, dict[str, str]] = {}
    begun = time.monotonic()
    for name in wanted:
        bed = BEDS[name]
        why_not = bed.missing()
        if why_not is not None:
            rows[f"{name} ({why_not})"] = dict.fromkeys(CELLS, NOT_RUN)
            continue
        with tempfile.TemporaryDirectory() as directory:
            rows[name] = filled(bed, Path(directory))
        lines = [name, *(f"  {cell}: {text}" for cell, text in rows[name].items())]
        sys.stdout.write("\n".join(lines) + "\n")
    if "--write" in arguments:
        PAGE.write_text(page(rows, time.monotonic() - begun))
    return int(any("FAILED" in text for cells in rows.values() for text in cells.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
