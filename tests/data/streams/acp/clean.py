"""Makes a recording of an ACP agent's stdout small and nobody's own, for ``tests/data/streams``.

python clean.py RECORDING DIRECTORY=STANDS_FOR... > AGENT.KIND.jsonl

Each DIRECTORY that the recording names becomes what it stands for, the longest first.
Lists of what an agent offers (commands, models) are cut to three entries, and what is written about
those is left out: nothing reads it, and it is somebody else's text.
"""

import contextlib
import json
import re
import sys
from pathlib import Path
from typing import Any

LONG = frozenset(
    {"availableCommands", "availableModels", "availableSkillDetails", "options", "configOptions"}
)
PROSE = frozenset({"description", "body", "hint"})
LEFT_OUT = "…"
KEPT = 3
TEXT_MAX = 2_000


def cleaned(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: cleaned(each, name) for name, each in value.items()}
    if isinstance(value, list):
        is_choice = key == "options" and any("optionId" in each for each in value)
        most = KEPT if key in LONG and not is_choice else len(value)
        return [cleaned(each) for each in value[:most]]
    if isinstance(value, str) and key in PROSE:
        return LEFT_OUT
    if isinstance(value, str) and len(value) > TEXT_MAX:
        return value[:TEXT_MAX]
    return value


def main(recording: str, *renamed: str) -> None:
    pairs = sorted((each.split("=", 1) for each in renamed), key=lambda pair: -len(pair[0]))
    for line in Path(recording).read_text().splitlines():
        text = line
        with contextlib.suppress(json.JSONDecodeError):  # some print what is none
            text = json.dumps(cleaned(json.loads(line)), ensure_ascii=False)
        for name, stands_for in pairs:
            text = text.replace(name, stands_for)
        text = re.sub(r'("pid": |PGID: )\d+', r"\g<1>4711", text)
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
