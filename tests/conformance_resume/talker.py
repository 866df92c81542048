"""A worker with a conversation: the smallest agent that speaks ACP, with nothing installed.

It keeps each conversation in a file of its own below ``TALKS`` and appends to ``LEDGER`` what it
began each turn from, and how it left it. A turn says three words, with a pause after each.
"""

import hashlib
import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Final

PAUSE_S: Final = 0.1
WORDS: Final = 3
TALKS: Final = Path(os.environ.get("TALKS", "talks"))


def send(**document: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **document}), flush=True)  # noqa: T201 - the protocol's


def digest(messages: list[str]) -> str:
    return f"{len(messages)}:{hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:12]}"


def turn(session: str, prompt: list[dict[str, Any]]) -> None:
    """Take a message, say three words, and keep what was said."""
    file = TALKS / session
    messages: list[str] = json.loads(file.read_text("utf-8"))
    before = digest(messages)
    messages.append("\n".join(each["text"] for each in prompt if each["type"] == "text"))
    for number in range(WORDS):
        time.sleep(PAUSE_S)
        content = {"type": "text", "text": f"word {number} "}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send(method="session/update", params={"sessionId": session, "update": update})
        messages.append(content["text"])
    keep(file, messages)
    told = json.dumps(messages[-WORDS - 1]).replace(" ", "_")
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"turn {session} {before} {digest(messages)} {told}\n")


def keep(file: Path, messages: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".new").write_text(json.dumps(messages), "utf-8")
    file.with_suffix(".new").replace(file)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        params = asked.get("params") or {}
        answer: dict[str, object] = {}
        match asked.get("method"):
            case "initialize":
                answer = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            case "session/new":
                session = uuid.uuid4().hex
                keep(TALKS / session, [])
                answer = {"sessionId": session}
            case "session/prompt":
                turn(params["sessionId"], params["prompt"])
                answer = {"stopReason": "end_turn"}
            case "session/load" | "session/set_mode":
                pass
            case _:
                if "id" in asked:
                    send(id=asked["id"], error={"code": -32601, "message": "no such method"})
                continue
        send(id=asked["id"], result=answer)


if __name__ == "__main__":
    main()
