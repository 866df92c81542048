"""A worker program imports what its turn needs: that is most of what a turn costs."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.e2e.scripted_model import Say, ScriptedModel

from subagents.extensions.llm.llm_assignment import Assignment, Provider

BOUND_S: Final = 100.0
NOT_NEEDED: Final = frozenset(
    {"click", "fastmcp", "mcp", "prometheus_client", "pygments", "rich", "starlette",
     "uvicorn"}
)  # fmt: skip
SDKS: Final = {"anthropic": "anthropic", "openai": "openai", "google": "google.genai"}
OURS_MAX: Final = 45
ALL_MAX: Final = {"anthropic": 4_040, "openai": 1_370, "google": 950}
"""Tried for in vain ones included, with pydantic-ai 2.68. A newer one may need another number; our
own code never."""


def imported(provider: Provider, root: Path) -> list[str]:
    """The modules that one turn of the real program imports."""
    with ScriptedModel({"t": [Say("done")]}) as model:
        assignment = Assignment(
            attempt_id="r-1#1",
            message="script:t",
            system_prompt="",
            cwd=str(root),
            provider=provider,
            model="scripted",
            base_url=model.url + ("/v1" if provider == "openai" else ""),
            session_file=str(root / "session"),
            session_id="r-1/1",
            limits_dir=str(root),
        )
        file = root / "assignment"
        file.write_bytes(msgspec.json.encode(assignment))
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-X",
                "importtime",
                "-m",
                "subagents.extensions.llm.agent_loop",
                str(file),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
            env={"PATH": os.environ["PATH"]},
        )
    assert '"text":"done"' in done.stdout, done.stderr[-2000:]
    rows = (line.rsplit("|", 1) for line in done.stderr.splitlines() if "|" in line)
    return [name.strip() for _, name in rows]


@pytest.mark.requirement("llm:cost-of-a-worker")
@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_a_turn_imports_what_it_needs_and_of_one_provider_only(
    provider: Provider, tmp_path: Path
) -> None:
    pytest.importorskip(SDKS[provider])

    found = imported(provider, tmp_path)

    assert len(found) <= ALL_MAX[provider], len(found)
    assert sum(name.split(".")[0] == "subagents" for name in found) <= OURS_MAX
    assert not NOT_NEEDED & {name.split(".")[0] for name in found}
    others = tuple(f"{sdk}." for name, sdk in SDKS.items() if name != provider)
    assert not [name for name in found if name.startswith(others)]
