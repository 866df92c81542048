"""The name by which 0.1.0 started its agent loop still starts one."""

from pathlib import Path

import pytest
from tests.e2e.llm_process import llm_harness
from tests.e2e.scripted_model import Say, ScriptedModel


@pytest.mark.requirement("llm:settings")
def test_a_worker_that_a_daemon_of_0_1_0_starts_by_its_old_name_does_its_turn(
    tmp_path: Path,
) -> None:
    with ScriptedModel({"t": [Say("done")]}) as model, llm_harness(tmp_path, model.url) as place:
        result = place.start("script:t", module="subagents.llm").finish()

    assert result == {"subagents": "result", "text": "done"}
