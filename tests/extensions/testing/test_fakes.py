"""Scripted agents for users' tests: the page about them is run as a user would run it."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.page_blocks import ROOT
from tests.test_doc_blocks import runnable

from subagents.extensions.testing.fakes import scripted_agents

PAGE = ROOT / "docs" / "howto" / "testing.md"


@pytest.mark.requirement("python:fakes")
def test_the_tests_on_the_page_pass_under_a_users_pytest(tmp_path: Path) -> None:
    for number, block in enumerate(runnable(PAGE)):
        (tmp_path / f"test_block_{number}.py").write_text(block.body)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "5 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.requirement("python:fakes")
def test_a_text_is_the_result_and_steps_stay_as_they_are() -> None:
    steps = [{"exit": 3}]

    assert scripted_agents(reader="read", broken=steps) == {
        "agents.reader.runtime": "scripted",
        "agents.reader.script": [{"result": "read"}],
        "agents.broken.runtime": "scripted",
        "agents.broken.script": steps,
    }
