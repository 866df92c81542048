"""What the browser of these tests leaves to the tests of other folders."""

import subprocess
import sys
from pathlib import Path

import pytest

AFTER = "import asyncio\n\n\ndef test_it():\n    asyncio.run(asyncio.sleep(0))\n"
BEFORE = "test_opening.py::test_an_address_that_was_used_says_how_to_get_another"


@pytest.mark.requirement("project:ci")
def test_a_test_of_another_folder_in_the_same_process_can_run_its_own_event_loop(
    tmp_path: Path,
) -> None:
    after = tmp_path / "test_after.py"
    after.write_text(AFTER)
    here = Path(__file__).parent
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", here / BEFORE, after],
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stdout
