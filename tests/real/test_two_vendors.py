"""Claude Code and Codex in two trees of one repository, and one in place of the other."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home
from tests.e2e.program_setups import CLAUDE, ProgramSetup
from tests.e2e.runtime_cells import RUN_S
from tests.e2e.scripted_model import Conversation, Fail, Say, ScriptedModel, Turn
from tests.real.codex_setup import CODEX
from tests.repository import a_repository, git

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        (CODEX.missing() or CLAUDE.missing()) is not None,
        reason="codex and claude-agent-sdk are not installed: make test-real",
    ),
]

SUBSCRIBED: Final = replace(
    CLAUDE,
    env=lambda url, root: {
        **{name: each for name, each in CLAUDE.env(url, root).items() if "API_KEY" not in name},
        "CLAUDE_CODE_OAUTH_TOKEN": "x",
    },
)
"""Claude Code tells when its limit ends to those who are logged in, and not to those with a key."""


@contextmanager
def place(root: Path, *setups: ProgramSetup) -> Iterator[tuple[LiveHome, ScriptedModel]]:
    with ScriptedModel({}) as model:
        config = DEFAULTS
        for setup in setups:
            own = root / "setups" / setup.name
            own.mkdir(parents=True)
            setup.prepare(model.url, own)
            config = setup.config(model.url, own) + config
        with live_home(root, config=config) as home:
            yield home, model


def worktree(home: LiveHome, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "subagents", "worktree", *arguments]
    return subprocess.run(
        program, env=home._env, cwd=home.work, capture_output=True, check=False, text=True
    )


@pytest.mark.requirement("cli:worktree")
def test_both_bring_their_work_home_and_a_third_hears_which_file_is_in_conflict(
    tmp_path: Path,
) -> None:
    with place(tmp_path, CLAUDE, CODEX) as (home, model):
        a_repository(home.work)
        for name, setup in (("claude", CLAUDE), ("codex", CODEX), ("rival", CODEX)):
            own = "claude" if name == "rival" else name
            model.scripts[name] = [setup.shell(f"echo by {name} > {own}.txt"), Say("written")]
            home.spawn(f"script:{name}", agent=setup.name, label=name, isolation="worktree")
        done = home.finish(*home.stored(), timeout_s=RUN_S)
        assert [each["outcome"]["status"] for each in done] == ["ok"] * 3, done
        merged = [worktree(home, "merge", name) for name in ("claude", "codex", "rival")]
        assert [(each.returncode, "merged into main" in each.stdout) for each in merged] == [
            *((0, True), (0, True), (1, False)),
        ]
        assert merged[2].stdout == "claude.txt\n"
        shown = [(home.work / f"{name}.txt").read_text() for name in ("claude", "codex")]
        assert shown == ["by claude\n", "by codex\n"]
        assert git(home.work, "status", "--porcelain") == ""


@pytest.mark.requirement("limits:next:agent", "limits:next:digest")
def test_a_refusal_of_three_days_hands_the_work_to_the_other_with_what_was_done(
    tmp_path: Path,
) -> None:
    def begins_or_takes_over(seen: Conversation) -> Turn:
        if seen.wire == "anthropic":
            return CLAUDE.shell("echo half > out.txt; echo it is half done")
        digest = ("agent codex takes over from claude", "it is half done")
        return Say(f"took over: {[each in seen.seen for each in digest]}")

    with place(tmp_path, SUBSCRIBED, CODEX) as (home, model):
        until_s = int(time.time()) + 3 * 86_400
        refused = {"status": "rejected", "reset": f"{until_s}", "representative-claim": "seven_day"}
        headers = {f"anthropic-ratelimit-unified-{name}": each for name, each in refused.items()}
        no_more = Fail(429, times=None, for_s=RUN_S * 2, headers=headers)
        model.scripts["long"] = [begins_or_takes_over, no_more, Say("never")]
        steps = ["wait 1h", "agent:codex"]
        run_id = home.spawn("script:long", agent="claude", onLimit=steps)
        (done,) = home.finish(run_id, timeout_s=RUN_S)
        assert done["result"] == "took over: [True, True]", done
        assert (home.work / "out.txt").read_text() == "half\n"
        assert [each["outcome"]["reason"] for each in home.show(run_id)["attempts"]] == [
            *("provider_limit", None),
        ]
