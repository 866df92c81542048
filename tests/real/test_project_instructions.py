"""Which of a project's AGENTS.md, CLAUDE.md and GEMINI.md other programs go by as workers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.e2e import runtime_cells as cells
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Say
from tests.real.acp_programs import GEMINI, OPENCODE
from tests.real.codex_setup import CODEX

FILES: Final = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
TRUSTING: Final = replace(CODEX, options={**CODEX.options, "trust_project": True})


@pytest.mark.requirement("real:project-instructions")
@pytest.mark.parametrize(
    ("setup", "seen"),
    [
        pytest.param(CODEX, [], id="codex"),
        pytest.param(TRUSTING, ["AGENTS.md"], id="codex-that-trusts-the-project"),
        pytest.param(OPENCODE, ["AGENTS.md"], id="opencode"),
        pytest.param(GEMINI, ["GEMINI.md"], id="gemini"),
    ],
)
def test_a_worker_goes_by_the_file_that_its_program_reads(
    tmp_path: Path, setup: ProgramSetup, seen: list[str]
) -> None:
    if missing := setup.missing():
        pytest.skip(missing)
    with cells.place_of(setup, tmp_path) as place:
        for name in FILES:
            (place.home.work / name).write_text(f"a rule of {name}\n")
        place.model.scripts["look"] = [Say("seen")]
        (done,) = place.finish(place.spawn("look"))
        assert done["outcome"]["status"] == "ok", done
        sent = json.dumps([each.raw for each in place.model.conversations])
        assert [name for name in FILES if f"a rule of {name}" in sent] == seen
