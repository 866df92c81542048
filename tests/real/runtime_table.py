"""Runs every cell for every program that is here, and keeps what was seen of which version.

python -m tests.real.runtime_table [--write] [SETUP...]
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import msgspec  # noqa: E402 - found only now
from scripts import runtime_table_page  # noqa: E402
from tests.e2e.acp_setups import ACP  # noqa: E402
from tests.e2e.claude_place import program as claude_program  # noqa: E402
from tests.e2e.program_setups import CLAUDE, LLM, ProgramSetup  # noqa: E402
from tests.e2e.runtime_cells import filled  # noqa: E402
from tests.real.acp_programs import SETUPS as AGENTS  # noqa: E402
from tests.real.codex_setup import CODEX  # noqa: E402
from tests.real.install import PROGRAMS, version_here  # noqa: E402

from subagents.extensions.conversation.versions_seen import (  # noqa: E402
    FILE,
    ProgramVersions,
    Trial,
    number_in,
    versions_seen,
)
from subagents.process_group import run  # noqa: E402

SETUPS: Final[dict[str, ProgramSetup]] = {
    setup.name: setup for setup in (CLAUDE, CODEX, *AGENTS.values(), LLM, ACP)
}


def version_of(name: str) -> str:
    """The version of a program that is here; empty = it is our own."""
    if name == CLAUDE.name:
        said = run([str(claude_program()), "--version"], timeout_s=60).stdout.decode()
        return number_in(said) or ""
    return version_here(name) or "" if name in PROGRAMS else ""


def kept(rows: dict[str, dict[str, str]]) -> None:
    """Put what was seen today into the table and on its page."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    table = dict(versions_seen())
    for name, cells in rows.items():
        trial = Trial(version=version_of(name), tried_on=today, held=cells)
        table[name] = runtime_table_page.with_trial(table.get(name, ProgramVersions()), trial)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=2) + b"\n")
    runtime_table_page.PAGE.write_text(runtime_table_page.page(table))


def main(arguments: list[str]) -> int:
    """Print (and with ``--write`` keep, each when it is there) the rows of these, or of all."""
    wanted = [each for each in arguments if not each.startswith("-")] or list(SETUPS)
    rows: dict[str, dict[str, str]] = {}
    for name in wanted:
        setup = SETUPS[name]
        why_not = setup.missing()
        if why_not is not None:
            sys.stdout.write(f"{name}: not run ({why_not})\n")
            continue
        with tempfile.TemporaryDirectory() as directory:
            rows[name] = filled(setup, Path(directory))
        lines = [f"{name} {version_of(name)}", *(f"  {c}: {t}" for c, t in rows[name].items())]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        if "--write" in arguments:
            kept(rows)
    return int(any("FAILED" in text for cells in rows.values() for text in cells.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
