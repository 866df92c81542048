"""docs/runtime-table.md, from the table of versions seen.

python -m scripts.runtime_table_page [--check]
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.extensions.conversation.versions_seen import ProgramVersions, Trial, versions_seen

TRIALS_MAX: Final = 5
"""Kept per program; the oldest are forgotten first."""
PAGE: Final = Path(__file__).parents[1] / "docs" / "runtime-table.md"
CELLS: Final = (
    *("edit", "command", "ask", "spawn", "no deliverable", "steer", "interrupt", "cancel"),
    *("resume", "scope", "usage", "daemon killed"),
)
HEAD: Final = """# What each runtime was observed to do

Each row is a series of real runs of the real program, behind a real daemon, with a scripted model
in place of a language model; `make test-real` and `make runtime-table` run them with the newest
versions that npm has and write the table (`extensions/conversation/versions_seen.json`) that
`subagents doctor` compares with what is installed.

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
not do it; an empty cell was not tried. Of each program the newest version tried is shown.
"""


def page(table: Mapping[str, ProgramVersions]) -> str:
    """The Markdown page."""
    lines = [HEAD, "| program | version | tried on | " + " | ".join(CELLS) + " |"]
    lines.append("|---" * (len(CELLS) + 3) + "|")
    for name, row in table.items():
        for trial in row.seen[-1:]:
            held = (trial.held.get(each, "").replace("|", "\\|") for each in CELLS)
            shown = [name, trial.version or "ours", trial.tried_on, *held]
            lines.append("| " + " | ".join(shown) + " |")
    oldest = [
        f"- {name}: {row.oldest} ({row.why_oldest})"
        for name, row in table.items()
        if row.oldest is not None
    ]
    return "\n".join([*lines, "", "The oldest versions that can work:", "", *oldest]) + "\n"


def with_trial(row: ProgramVersions, trial: Trial) -> ProgramVersions:
    """The row with one more trial; an earlier one of the same version gives way to it."""
    others = [each for each in row.seen if each.version != trial.version]
    return msgspec.structs.replace(row, seen=(*others, trial)[-TRIALS_MAX:])


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is up to date."""
    wanted = page(versions_seen())
    if "--check" in arguments:
        is_fresh = PAGE.read_text() == wanted
        if not is_fresh:
            sys.stderr.write("docs/runtime-table.md is out of date: make docs\n")
        return int(not is_fresh)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
