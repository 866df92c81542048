"""The dialect of docs/howto/own-runtime.md works as it stands there, and so does its test."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.page_blocks import ROOT, blocks

from subagents.extensions.testing.conformance import Behaviour
from subagents.extensions.testing.runtime_suite import SUITE, RuntimePlace

PAGE = ROOT / "docs" / "howto" / "own-runtime.md"
PROGRAM = f"""#!{sys.executable}
import json, sys

def say(*words):
    print(*words, flush=True)

say("session s-1")
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "do":
        for each in json.loads(rest).split():
            say("say", each)
        if each == "waiting":
            continue
    elif word == "also":
        key, _, text = rest.partition(" ")
        say("got", key)
        say("say", json.loads(text))
    say("done")
"""


@pytest.mark.requirement("plugins:documented-dialect")
@pytest.mark.parametrize("behaviour", SUITE.behaviours, ids=lambda each: each.name)
def test_the_documented_dialect_passes_the_documented_test(
    behaviour: Behaviour[RuntimePlace], tmp_path: Path
) -> None:
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.language == "python":
            exec(block.body, names)  # noqa: S102 - the page's own code
    program = tmp_path / "acme"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    names["AcmePlace"].env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    names["test_acme"](behaviour, tmp_path)
