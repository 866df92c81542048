"""The worker program of the runtime ``llm``, as a real process without a daemon."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec
from tests.live_processes import carrying

from subagents.extensions.llm.llm_assignment import Assignment, Provider

BOUND_S: Final = 100.0
KEY: Final = "LLM_TEST_KEY"

Document = dict[str, Any]


class LlmProcess:
    """One turn. Its events are collected while it works."""

    def __init__(self, assignment: Assignment, file: Path, module: str) -> None:
        file.write_bytes(msgspec.json.encode(assignment))
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        with Path(f"{file}.err").open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**env, KEY: "sk-test-0123456789", "LLM_TEST": str(file)},
                cwd=assignment.cwd,
            )
        self._errors = Path(f"{file}.err")
        self._file = file
        self.events: list[Document] = []
        self._came = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def processes(self) -> list[int]:
        """What is alive of it and of all that it started."""
        return carrying("LLM_TEST", str(self._file))

    def send(self, **line: object) -> None:
        stdin = cast("IO[bytes]", self.process.stdin)
        stdin.write(json.dumps(line).encode() + b"\n")
        stdin.flush()

    def until(self, kind: str, **fields: object) -> Document:
        """The first event of that kind with these fields; fails when none comes."""

        def found() -> Document | None:
            wanted = {"subagents": kind, **fields}
            return next((each for each in self.events if wanted.items() <= each.items()), None)

        with self._came:
            is_there = self._came.wait_for(found, BOUND_S)
        assert is_there, f"no {kind} {fields} in {self.events}\n{self._errors.read_text()}"
        return cast("Document", found())

    def of(self, kind: str) -> list[Document]:
        return [each for each in self.events if each["subagents"] == kind]

    def finish(self) -> Document:
        """Its result, once it is gone."""
        code = self.process.wait(BOUND_S)
        self._reader.join(BOUND_S)
        results = self.of("result")
        assert len(results) == 1, f"{code}: {self.events}\n{self._errors.read_text()}"
        assert self.events[-1] is results[0]
        return results[0]

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait(BOUND_S)
        self._reader.join(BOUND_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        for line in cast("IO[bytes]", self.process.stdout):
            with self._came:
                self.events.append(json.loads(line))
                self._came.notify_all()


class LlmHarness:
    """Where worker processes of one test work; all of them share what they learn of limits."""

    def __init__(self, root: Path, url: str, provider: Provider) -> None:
        self.root = root
        self.work = root / "work"
        self.limits = root / "limits"
        for directory in (self.work, self.limits):
            directory.mkdir(parents=True)
        self._url = url + ("/v1" if provider.startswith("openai") else "")
        self._provider = provider
        self._made: list[LlmProcess] = []

    def start(
        self,
        message: str,
        *,
        session: str = "s1",
        after: str | None = None,
        module: str = "subagents.extensions.llm.agent_loop",
        **more: object,
    ) -> LlmProcess:
        """A turn.

        Args:
            message: What the user says.
            session: Which conversation.
            after: The conversation that continues; None = a new one.
            module: The name by which the program is started.
            more: Other fields of the assignment.
        """
        assignment = Assignment(
            attempt_id=f"r-1#{session}",
            message=message,
            system_prompt="You are a test.",
            cwd=str(self.work),
            provider=self._provider,
            model="scripted",
            key_env=KEY,
            base_url=self._url,
            session_file=str(self.root / f"{session}.json"),
            history_file=None if after is None else str(self.root / f"{after}.json"),
            session_id=session,
            limits_dir=str(self.limits),
        )
        assignment = msgspec.structs.replace(assignment, **more)
        file = self.root / f"assignment-{len(self._made)}"
        self._made.append(LlmProcess(assignment, file, module))
        return self._made[-1]

    def end(self) -> None:
        for each in self._made:
            each.end()


@contextlib.contextmanager
def llm_harness(root: Path, url: str, provider: Provider = "openai") -> Iterator[LlmHarness]:
    """A bench for the length of the block; its processes are gone afterwards."""
    made = LlmHarness(root / "bench", url, provider)
    try:
        yield made
    finally:
        made.end()
