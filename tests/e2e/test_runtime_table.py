"""Every runtime that can run here does the same things; docs/runtime-table.md shows them all."""

from pathlib import Path
from typing import Final

import pytest
from tests.e2e.acp_setups import ACP
from tests.e2e.program_setups import CLAUDE, LLM, ProgramSetup
from tests.e2e.runtime_cells import CELLS, filled
from tests.e2e.vendor_tree import show_that_all_results_arrive_once

PAGE: Final = Path(__file__).parents[2] / "docs" / "runtime-table.md"
ROWS: Final = {"claude", "codex", "opencode", "gemini", "goose", "qwen", "llm", "acp"}


@pytest.mark.requirement("runtimes:same-tasks")
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "setup",
    [CLAUDE, *(pytest.param(each, marks=pytest.mark.tier("all")) for each in (LLM, ACP))],
    ids=lambda setup: setup.name,
)
def test_every_runtime_does_the_same_things(tmp_path: Path, setup: ProgramSetup) -> None:
    assert setup.missing() is None, setup.missing()

    row = filled(setup, tmp_path)

    assert not {cell: text for cell, text in row.items() if "FAILED" in text}
    assert set(row) == set(CELLS)


@pytest.mark.requirement("runtimes:three-vendors")
@pytest.mark.timeout(300)
def test_claude_code_delegates_to_other_vendors_and_all_results_arrive_once(
    tmp_path: Path,
) -> None:
    show_that_all_results_arrive_once(tmp_path, LLM, ACP)


@pytest.mark.requirement("runtimes:table-in-docs")
def test_the_table_in_the_docs_has_every_program_and_every_column() -> None:
    lines = PAGE.read_text().splitlines()
    header = next(line for line in lines if line.startswith("| program"))
    columns = [cell.strip() for cell in header.strip("|").split("|")[1:]]
    assert columns == ["version", "tried on", *CELLS]
    rows = [line.split("|")[1].strip().partition(" (")[0] for line in lines if "|" in line]
    assert set(rows) >= ROWS
    assert "FAILED" not in "".join(line for line in lines if line.startswith("|"))
