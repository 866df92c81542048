"""What the tools cost a model's context: tokens of names, descriptions and schemas.

``python -m bench.tool_tokens --tokenizer FILE`` counts with a tokenizer in the format of the
package ``tokenizers`` (``pip install tokenizers``); any will do. Claude's own was last published
inside a wheel: ``pip download --no-deps anthropic==0.38.0``, then unzip
``anthropic/tokenizer.json``. Nothing is fetched by this script.

Without ``--tokenizer`` it prints characters; ``--write FILE`` writes the text that any other
tokenizer can count (with Node: ``npm install gpt-tokenizer``, then ``encode`` of
``gpt-tokenizer/encoding/o200k_base``). Exits 1 when the requesters' tools cost 3,000 tokens.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from subagents.api.tools.tool import Audience, Tool
from subagents.api.tools.tool_registry import TOOLS

TOKENS_MAX: Final = 3_000


def listing(tools: Iterable[Tool]) -> str:
    """The tools as a client is sent them, without what it keeps to itself."""
    found = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for tool in tools
    ]
    return json.dumps({"tools": found}, separators=(",", ":"), ensure_ascii=False)


def counter(file: Path | None) -> Callable[[str], int]:
    """Counts tokens, or characters when there is no tokenizer."""
    if file is None:
        return len
    tokenizers: Any = importlib.import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    return lambda text: len(tokenizer.encode(text).ids)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json")
    parser.add_argument("--write", type=Path, help="write the requesters' listing there")
    asked = parser.parse_args()
    count = counter(asked.tokenizer)
    unit = "characters" if asked.tokenizer is None else "tokens"
    totals: dict[Audience, int] = {}
    for audience in Audience:
        tools = [tool for tool in TOOLS.values() if tool.audience is audience]
        for tool in tools:
            print(f"{tool.name:30} {count(listing([tool])):6} {unit}")
        totals[audience] = count(listing(tools))
        print(f"{f'all {audience} tools':30} {totals[audience]:6} {unit}\n")
    if asked.write is not None:
        requester = [tool for tool in TOOLS.values() if tool.audience is Audience.REQUESTER]
        asked.write.write_text(listing(requester), encoding="utf-8")
    is_too_much = asked.tokenizer is not None and totals[Audience.REQUESTER] >= TOKENS_MAX
    return 1 if is_too_much else 0


if __name__ == "__main__":
    sys.exit(main())
