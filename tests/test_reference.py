"""The generated reference: nothing of the code is left out of it, and nothing in it is made up."""

import re
from pathlib import Path
from typing import Final

import pytest
from scripts import (
    cli_reference,
    code_tables,
    docs_site,
    http_reference,
    llms_txt,
    plan_reference,
    python_reference,
    walkaway_picture,
)
from scripts.docs_site import text_of
from scripts.spawn_flags import FLAGS

import subagents
from subagents.api.server.app import parts
from subagents.api.server.openapi import codes, unlisted
from subagents.api.wire.requests import FLAGS as CALLED
from subagents.cli.command_table import commands
from subagents.domain.run.events import EVENT_TYPES
from subagents.domain.run.parameter import parameters
from subagents.domain.run.spec import RunSpec

ROOT: Final = Path(__file__).parent.parent


def titles(text: str) -> set[str]:
    return set(re.findall(r"^### (.+)$", text, re.MULTILINE))


@pytest.mark.requirement("docs:reference")
def test_every_command_has_its_section_and_run_has_every_flag() -> None:
    text = text_of(cli_reference.PAGE)

    assert {each.name for each in commands()} <= titles(text)
    run = text.partition("### run\n")[2].partition("\n### ")[0]
    shown = set(re.findall(r"--[a-z][a-z0-9-]+", run))
    assert {name for flag in FLAGS for name in flag.names if name.startswith("--")} <= shown


@pytest.mark.requirement("docs:reference")
def test_every_route_has_its_section_and_every_document_that_it_names() -> None:
    text = text_of(http_reference.PAGE)
    routes = [each for part in parts() for each in part.ROUTES if each.path not in unlisted()]

    there = titles(text)
    for route in routes:
        for method in (route.methods or set()) - {"HEAD"}:
            assert f"{method} {route.path}" in there
    named = set(re.findall(r"\]\(#(\w+)\)", text))
    assert named <= {each.lower() for each in there}
    assert "A plan: its id" in text.partition("### POST /v1/plans/{sel}/retry")[2][:300]


@pytest.mark.requirement("docs:reference")
def test_every_error_and_every_event_has_its_place() -> None:
    errors = text_of(code_tables.ERRORS)

    # Of an unknown path, of no class, and of a call of HTTP alone.
    elsewhere = {"error", "internal", "body_too_large"}
    assert codes() - elsewhere <= set(re.findall(r"^\| `(\w+)`", errors, re.MULTILINE))
    assert {each.__name__ for each in EVENT_TYPES} == titles(text_of(code_tables.JOURNAL))


@pytest.mark.requirement("docs:reference")
def test_every_exported_name_and_every_public_method_of_a_run_has_its_place() -> None:
    text = text_of(python_reference.PAGE)

    for name in subagents.__all__:
        assert f"## {name}\n" in text or f"`{name}`" in text
    methods = {
        f"RunHandle.{name}"
        for name, found in vars(subagents.RunHandle).items()
        if not name.startswith("_") and (callable(found) or isinstance(found, property))
    }
    assert methods <= titles(text)


@pytest.mark.requirement("docs:reference")
def test_every_spawn_parameter_is_a_key_of_the_page_of_plan_files() -> None:
    keys = set(re.findall(r"^\| `([\w.\[\]]+)` \|", text_of(plan_reference.PAGE), re.MULTILINE))

    called = {own: flag for flag, own in CALLED.items()}
    names = {called.get(each.attribute, each.attribute) for each in parameters(RunSpec)}
    assert names | {"matrix", "env", "vars", "name", "budget"} <= {
        key.removesuffix("[]") for key in keys
    }


@pytest.mark.requirement("docs:reference")
def test_the_list_for_models_has_every_page_but_the_single_decisions() -> None:
    listed = set(re.findall(r"\]\(([^)]+)\): \S", text_of(str(llms_txt.FILE))))

    pages = (ROOT / "docs").rglob("*.md")
    there = {str(each.relative_to(ROOT / "docs")) for each in pages}
    assert listed == {
        each for each in there if each != "README.md" and not re.match(r"decisions/\d", each)
    }


@pytest.mark.requirement("docs:reference")
def test_what_a_commit_has_of_a_drawn_page_says_where_the_rest_is() -> None:
    for name in docs_site.DRAWN:
        text = (ROOT / name).read_text("utf-8")
        assert f"`.venv/bin/python -m scripts.docs_site {name}` prints the page." in text
        assert len(text.splitlines()) < 40, f"{name}: git checkout {name}"


@pytest.mark.requirement("docs:recording")
def test_the_picture_plays_every_line_of_the_recording_in_order_within_its_length() -> None:
    lines = walkaway_picture.lines_of(text_of(str(walkaway_picture.PAGE)))
    moments = list(walkaway_picture.moments(lines))

    assert len(moments) == len(lines)
    assert moments == sorted(moments)
    assert moments[0] == 0
    assert moments[-1] <= walkaway_picture.LENGTH_S + 1
    picture = walkaway_picture.drawn(text_of(str(walkaway_picture.PAGE)))
    assert picture.count("<text ") == sum(1 for line in lines if line)
    assert "All of it is true" in picture
