"""Which instructions and settings of a project and of its user a worker goes by, as documented.

The real Claude Code, its model scripted: what it sends to the model is all that it knows.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.e2e import runtime_cells as cells
from tests.e2e.live_home import DEFAULTS, live_home
from tests.e2e.program_setups import CLAUDE, LLM, inline
from tests.e2e.scripted_model import Say, ScriptedModel, Use

pytestmark = pytest.mark.skipif(CLAUDE.missing() is not None, reason=str(CLAUDE.missing()))
AGENT: Final = """
[agents.{name}]
runtime = "claude-code"
model = "scripted"
env = {env}
pass_env = ["E2E_MARK"]
runtime_options = {{ setting_sources = {sources} }}
"""
SOURCES: Final[Mapping[str, list[str]]] = {
    "none": [],
    "of-project": ["project"],
    "of-user": ["user"],
    "of-all": ["user", "project", "local"],
}
PROJECT: Final = {"CLAUDE.md", "skill", "hook", "env"}
USER: Final = {"user CLAUDE.md", "user hook"}
LOCAL: Final = {"CLAUDE.local.md", "local env"}
SIGNS: Final[Mapping[str, str]] = {
    name: f"sign-{number:03d}"
    for number, name in enumerate(
        [*sorted(PROJECT | USER | LOCAL), "AGENTS.md", "below/CLAUDE.md", "below/AGENTS.md"]
    )
}
"""What is written where, and found again in what the model is told."""
SHOW: Final = Use("Bash", {"command": "echo $FROM_PROJECT $FROM_LOCAL", "description": "look"})


def hook(sign: str) -> dict[str, object]:
    """Settings whose hook adds a text to the prompt."""
    command = {"type": "command", "command": f"echo {SIGNS[sign]}"}
    return {"hooks": {"UserPromptSubmit": [{"hooks": [command]}]}}


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cells.Place]:
    root = tmp_path_factory.mktemp("instructions")
    own = root / "setup"
    with ScriptedModel({"look": [SHOW, Say("seen")], "read": [Say("seen")]}) as model:
        CLAUDE.prepare(model.url, own)
        mine = {
            "CLAUDE.md": SIGNS["user CLAUDE.md"],
            "settings.json": json.dumps(hook("user hook")),
        }
        write(own / "claude", mine)
        env = inline(CLAUDE.env(model.url, own))
        config = "".join(
            AGENT.format(name=name, env=env, sources=json.dumps(sources))
            for name, sources in SOURCES.items()
        )
        with live_home(root, config=DEFAULTS + config + LLM.config(model.url, own)) as home:
            skill = f"---\nname: look\ndescription: {SIGNS['skill']}\n---\nLook.\n"
            write(
                home.work,
                {
                    **{name: SIGNS[name] for name in ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md")},
                    ".claude/skills/look/SKILL.md": skill,
                    ".claude/settings.json": json.dumps(
                        {**hook("hook"), "env": {"FROM_PROJECT": SIGNS["env"]}}
                    ),
                    ".claude/settings.local.json": json.dumps(
                        {"env": {"FROM_LOCAL": SIGNS["local env"]}}
                    ),
                    "below/CLAUDE.md": f"@AGENTS.md\n{SIGNS['below/CLAUDE.md']}",
                    "below/AGENTS.md": SIGNS["below/AGENTS.md"],
                },
            )
            yield cells.Place(CLAUDE, home, model)


def told(place: cells.Place, agent: str, *, script: str = "look", below: str = "") -> set[str]:
    """What of all that stands in the files reached the model."""
    before = len(place.model.conversations)
    cwd = str(place.home.work / below)
    run_id = place.home.spawn(f"script:{script}", agent=agent, cwd=cwd)
    (done,) = place.home.finish(run_id)
    assert done["outcome"]["status"] == "ok", done
    sent = json.dumps([each.raw for each in place.model.conversations[before:]])
    return {name for name, sign in SIGNS.items() if sign in sent}


@pytest.mark.requirement("claude-worker:e2e:setting-sources")
@pytest.mark.parametrize(
    ("agent", "seen"),
    [
        ("none", set()),
        ("of-project", PROJECT),
        ("of-user", USER),
        ("of-all", PROJECT | USER | LOCAL),
    ],
)
def test_it_goes_by_the_files_that_setting_sources_names_and_by_no_agents_md(
    place: cells.Place, agent: str, seen: set[str]
) -> None:
    assert told(place, agent) == seen


@pytest.mark.requirement("claude-worker:e2e:setting-sources")
def test_below_it_also_goes_by_the_claude_md_above_and_by_what_its_own_includes(
    place: cells.Place,
) -> None:
    seen = told(place, "of-project", below="below")
    assert seen == {"CLAUDE.md", "skill", "below/CLAUDE.md", "below/AGENTS.md"}


@pytest.mark.requirement("llm:own-instructions-only")
def test_a_model_without_a_program_is_told_nothing_of_the_projects_files(
    place: cells.Place,
) -> None:
    assert told(place, LLM.name, script="read") == set()
