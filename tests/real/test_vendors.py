"""Claude Code delegates to Codex and opencode; a worker and the daemon are killed meanwhile."""

from pathlib import Path

import pytest
from tests.e2e.vendor_tree import show_that_all_results_arrive_once
from tests.real.acp_programs import SETUPS
from tests.real.codex_setup import CODEX

OPENCODE = SETUPS["opencode"]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        (CODEX.missing() or OPENCODE.missing()) is not None,
        reason="codex and opencode are not installed: make test-real",
    ),
]


@pytest.mark.requirement("runtimes:three-vendors")
def test_results_of_codex_and_opencode_arrive_once_at_claude_code(tmp_path: Path) -> None:
    show_that_all_results_arrive_once(tmp_path, CODEX, OPENCODE)
