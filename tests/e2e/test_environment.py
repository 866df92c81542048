"""What a worker is handed: an allow list, never our secrets."""

from pathlib import Path

import pytest
from tests.e2e.file_contents import contents
from tests.e2e.live_home import live_home

SECRETS = {
    "ANTHROPIC_API_KEY": "sk-planted-one",
    "AWS_SECRET_ACCESS_KEY": "planted-two",
    "SUBAGENTS_TOKEN": "planted-three",
    "HTTPS_PROXY": "http://user:planted-four@localhost:1",
    "SSH_AUTH_SOCK": "/planted-five",
}
ALLOWED = """
[agents.allowed]
runtime = "command"
command = ["sh", "-c", "{task}"]
pass_env = ["AWS_SECRET_ACCESS_KEY"]
"""
SHOW = (
    "cat /proc/self/environ /proc/$$/environ /proc/$PPID/environ | tr '\\0' '\\n' "
    "> env-$SUBAGENTS_RUN_ID"
)
"""Into a file of its own: in a result secrets are redacted."""


@pytest.mark.requirement("e2e:environment")
def test_no_secret_of_the_daemons_environment_reaches_a_worker_or_its_shim(tmp_path: Path) -> None:
    with live_home(tmp_path, config=ALLOWED, env=SECRETS) as home:
        plain, allowed = home.spawn(SHOW), home.spawn(SHOW, agent="allowed")
        home.finish(plain, allowed)
        seen, seen_allowed = ((home.work / f"env-{r}").read_text() for r in (plain, allowed))

        assert f"E2E_MARK={home.mark}" in seen
        assert f"SUBAGENTS_RUN_ID={plain}" in seen
        for name, value in SECRETS.items():
            assert name == "SUBAGENTS_TOKEN" or name not in seen
            assert value not in seen
        assert f"SUBAGENTS_TOKEN=sa_{plain}_1_" in seen  # its own, not the daemon's
        assert "AWS_SECRET_ACCESS_KEY=planted-two" in seen_allowed
        assert "planted-one" not in seen_allowed
        for file, content in contents(home.paths.state_dir):
            if not file.is_relative_to(home.paths.attempts_dir / allowed):
                assert b"planted-one" not in content, file
