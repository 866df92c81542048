"""What the user allows agents is in a file of the home until it is taken back."""

from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.errors import ConfigError
from subagents.store.allowed_call_file import AllowedCallFile


@pytest.mark.requirement("permissions:for-agent")
def test_what_is_allowed_stays_until_it_is_taken_back_and_a_broken_file_allows_nothing(
    tmp_path: Path,
) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    log = AllowedCallFile(paths)
    assert log.read() == {}
    for call in ("Bash: make", "Bash: ls", "Bash: make"):
        log.change("claude", call, allow=True)
    assert AllowedCallFile(paths).read() == {"claude": ("Bash: ls", "Bash: make")}
    log.change("claude", "Bash: make", allow=False)
    log.change("claude", "Bash: make", allow=False)
    log.change("codex", "shell: ls", allow=True)
    assert AllowedCallFile(paths).read() == {"claude": ("Bash: ls",), "codex": ("shell: ls",)}

    (paths.state_dir / "allowed-calls.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot read") as refused:
        log.read()
    assert "then nothing is allowed" in (refused.value.hint or "")
