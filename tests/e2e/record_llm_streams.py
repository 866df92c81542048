"""Records tests/data/streams/llm anew: ``python tests/e2e/record_llm_streams.py``.

The real worker program, against the scripted model; paths of this machine are replaced.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.e2e.live_home import until
from tests.e2e.llm_process import LlmHarness, LlmProcess, llm_harness
from tests.e2e.scripted_model import Fail, Say, Script, ScriptedModel, Tokens, Use, Wait

STREAMS: Final = Path(__file__).parents[1] / "data" / "streams" / "llm"
DIRECTORY: Final = "/home/ada/project"

SCRIPTS: Final[dict[str, Script]] = {
    "tools": [
        Use("write", {"path": "a/b.txt", "content": "hello"}, text="On it", thinking="hmm"),
        (
            Use("edit", {"path": "a/b.txt", "old": "hello", "new": "bye"}),
            Use("shell", {"command": "cat a/b.txt; exit 3"}),
        ),
        (Use("read", {"path": "/etc/passwd"}), Use("grep", {"pattern": "by."})),
        Say("All done.", tokens=Tokens(1_000, 50)),
    ],
    "limit": [Fail(429, retry_after=1), Fail(500), Say("through")],
    "patience": [Fail(529, retry_after=900, times=None, for_s=60)],
    "refused": [Fail(401, message="invalid x-api-key")],
    "steer": [Wait("gate"), Use("list"), Say("heard it")],
    "interrupt": [Use("shell", {"command": "echo $$ > pid; sleep 300"}, text="half")],
}


def steered(place: LlmHarness, model: ScriptedModel, worker: LlmProcess) -> None:
    del place
    model.until_waiting("gate")
    worker.send(type="message", key="k1", text="turn left")
    model.open("gate")


def interrupted(place: LlmHarness, model: ScriptedModel, worker: LlmProcess) -> None:
    del model
    pid = place.work / "pid"
    until(lambda: pid.exists() and pid.read_text().strip(), what="the command")
    worker.send(type="interrupt", key="i1")


ACTS: Final[dict[str, Callable[[LlmHarness, ScriptedModel, LlmProcess], None]]] = {
    "steer": steered,
    "interrupt": interrupted,
}


def recorded(name: str, root: Path) -> str:
    """The stream of one script."""
    with ScriptedModel({name: SCRIPTS[name]}) as model, llm_harness(root, model.url) as place:
        worker = place.start(f"script:{name}", limit_patience_s=30.0)
        if name in ACTS:
            ACTS[name](place, model, worker)
        worker.finish()
        lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in worker.events)
        return lines.replace(str(place.work), DIRECTORY)


def main() -> None:
    """Record all of them."""
    STREAMS.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        with tempfile.TemporaryDirectory() as directory:
            (STREAMS / f"{name}.jsonl").write_text(recorded(name, Path(directory)))
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
