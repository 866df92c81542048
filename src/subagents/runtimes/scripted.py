"""Plays a script instead of running a program: tests, demos, benchmarks.

Options: ``script``, a list of steps played in order; ``{"attempt": N}`` begins the steps of
attempt N (without one, every attempt plays the same); ``{"continued": true}`` begins those of runs
that continue a session of this agent (without one, such a run answers with its message). Steps:

``{"sleep_ms": N}`` · ``{"result": TEXT}`` · ``{"error": TEXT}`` (a result that says error) ·
``{"report": {…}}`` · ``{"progress": {…}}`` · ``{"usage": {…}}`` · ``{"tool": NAME}`` ·
``{"print": TEXT}`` (plain lines) · ``{"said": {"subagents": …}}`` (the same object that a plain
program prints, see ``worker_events``: of one with a signal both are seen) ·
``{"write": {"path": P, "text": T}}`` (relative to the working directory) ·
``{"fail_start": TEXT}`` · ``{"exit": CODE}`` · ``{"signal": N}`` · ``{"hang": true}`` (until
stopped). The end is exit 0. A tool that the attempt was not given is not used: its step is left
out. A tool that is used is output, too; a result is not, so that a script without ``print`` costs
no transcript.

It lives in this process: after a restart its attempts cannot be adopted and are lost.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.run import Exit, Progress, Report
from subagents.domain.run.signals import (
    Exited,
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.spec import Abilities
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import AttemptId, replace
from subagents.domain.run.worker_output import LineType, OutputBatch, OutputItem
from subagents.errors import ConfigError, RuntimeUnavailable
from subagents.ports import AttemptRef, Bound, Clock, Launch, StartedInfo
from subagents.runtimes.output.terminal_text import line_items
from subagents.runtimes.output.worker_events import (
    AnyEvent,
    ToolEvent,
    event_from,
    output_item_of,
    signal_of,
)

ScriptStep = Mapping[str, object]

STEPS: Final = frozenset(
    (
        *("attempt", "continued", "sleep_ms", "result", "error", "report", "progress", "usage"),
        *("tool", "write", "fail_start", "exit", "signal", "hang", "said", "print"),
    )
)
POSITION: Final = "steps"
"""The name of the position, which is the number of steps whose output was yielded."""
SIGTERM: Final = 15


@dataclass(slots=True)
class _Played:
    """One attempt as far as it was played."""

    steps: list[ScriptStep]
    cwd: str
    tools: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    messages: dict[str, str] = field(default_factory=dict)
    is_live: bool = True
    is_interrupted: bool = False

    def may_use(self, tool: str) -> bool:
        """Whether the attempt was given that tool."""
        return tool not in self.tools_deny and (self.tools is None or tool in self.tools)


class ScriptedRuntime:
    """See the module's text; steers are recorded, a follow-up turn answers with its message."""

    name = "scripted"
    abilities = Abilities(
        steer=True, resume=True, scope_tools=True, interrupt=True, usage=True, isolate=True
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: dict[AttemptId, _Played] = {}

    def check(self, options: Mapping[str, object]) -> None:
        """See ``ports.Runtime.check``."""
        for number, step in enumerate(_script(options)):
            for name in step:
                if name not in STEPS:
                    raise ConfigError(
                        f'script step {number} has the unknown key "{name}" '
                        f"(known: {', '.join(sorted(STEPS))})"
                    )
                if name != "said":
                    continue
                try:
                    event_from(step[name])
                except msgspec.ValidationError as error:
                    raise ConfigError(
                        f"script step {number}: `said` is no structured event: {error}"
                    ) from None

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:  # noqa: ARG002 - it has no processes
        """See ``ports.Runtime.marker``."""
        return {}

    async def start(self, launch: Launch) -> StartedInfo:
        """See ``ports.Runtime.start``."""
        if launch.attempt_id in self._attempts:
            return StartedInfo(adopted=True)
        continues = launch.native_session is not None
        steps = _steps_of(_script(launch.options), launch.number, continues=continues)
        if continues and not steps:
            steps = [{"print": launch.prompt}, {"result": launch.prompt}]
        for step in steps:
            if "fail_start" in step:
                raise RuntimeUnavailable(str(step["fail_start"]))
        self._attempts[launch.attempt_id] = _Played(
            steps=steps, cwd=launch.cwd, tools=launch.tools, tools_deny=launch.tools_deny
        )
        return StartedInfo(native_session=launch.native_session or launch.attempt_id)

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        """See ``ports.Runtime.discard``; there are no files."""

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        """See ``ports.Runtime.watch``; cursor and position count steps."""
        played = self._attempts.get(ref.attempt_id)
        if played is None:
            text = "a scripted attempt does not outlive its process"
            yield Vanished(key=f"{ref.attempt_id}:vanished", error=text), cursor
            return
        if ref.turns > 1:
            for seen in _turn(ref, played.messages[f"turn{ref.turns}"], positions):
                yield seen, cursor
            return
        ended = Exit(code=0)
        for number, step in enumerate(played.steps):
            if played.stopped.is_set():
                break
            if "exit" in step or "signal" in step:
                ended = Exit(code=_whole(step.get("exit")), signal=_whole(step.get("signal")))
                break
            signal = None
            if number >= cursor:
                signal = await self._play(step, played, f"{ref.attempt_id}:{number}")
            output = _output(step, played) if number >= positions.get(POSITION, 0) else ()
            if output:
                yield (
                    OutputBatch(items=output, positions={POSITION: number + 1}),
                    max(cursor, number),
                )
            if signal is not None:
                yield signal, number + 1
        if played.stopped.is_set() and not played.is_interrupted:
            ended = Exit(signal=SIGTERM)
        played.is_live = False
        yield Exited(key=f"{ref.attempt_id}:exit", exit=ended, drained=True), len(played.steps)

    async def _play(self, step: ScriptStep, played: _Played, key: str) -> Signal | None:
        for name, value in step.items():
            match name:
                case "sleep_ms":
                    await self._sleep(played, float(str(value)) / 1000)
                case "hang":
                    await played.stopped.wait()
                case "write":
                    _write(Path(played.cwd), value)
                case "tool" if not played.may_use(str(value)):
                    return None
                case "said":
                    event = event_from(value)
                    return signal_of(event, key=key) if _may_happen(event, played) else None
                case _:
                    return _signal(name, value, key)
        return None

    async def _sleep(self, played: _Played, seconds: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        stopping = asyncio.ensure_future(played.stopped.wait())
        try:
            await asyncio.wait((sleeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopping.cancel()

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:  # noqa: ARG002 - it obeys at once
        """See ``ports.Runtime.stop``."""
        # One that was not started never will be: a start that comes late finds it here.
        never = _Played(steps=[], cwd="")
        self._attempts.setdefault(ref.attempt_id, never).stopped.set()

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """See ``ports.Runtime.steer``."""
        self._live(ref).messages[key] = message

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Any scope can be enforced: a denied tool's step is left out."""

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``: a script has none."""

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``ports.Bounded.access_of``."""
        del options
        return configured or AccessLevel.FULL

    def bound(self, options: Mapping[str, object], access: Access) -> Bound:
        """See ``ports.Bounded.bound``: a script touches nothing."""
        del options
        return Bound(replace(access, kept_by=Keeper.PROGRAM))

    async def interrupt(self, ref: AttemptRef, *, key: str) -> None:
        """It ends at once, and well; the steps behind the present one are not played."""
        played = self._live(ref)
        played.messages[key] = "interrupt"
        played.is_interrupted = True
        played.stopped.set()

    def _live(self, ref: AttemptRef) -> _Played:
        played = self._attempts.get(ref.attempt_id)
        if played is None or not played.is_live:
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} is not live")
        return played

    async def resume(
        self,
        ref: AttemptRef,
        message: str,
        *,
        env: Mapping[str, str],  # noqa: ARG002 - nobody is there to read it
    ) -> StartedInfo:
        """See ``ports.Runtime.resume``."""
        played = self._attempts.get(ref.attempt_id)
        if played is None:
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} cannot be resumed")
        played.messages[f"turn{ref.turns}"] = message
        return StartedInfo()

    async def forget(self, ref: AttemptRef) -> None:
        """See ``ports.Runtime.forget``."""
        self._attempts.pop(ref.attempt_id, None)


def _turn(
    ref: AttemptRef, message: str, positions: Mapping[str, int]
) -> list[Signal | OutputBatch]:
    """A follow-up turn answers with its message."""
    key, name = f"{ref.attempt_id}:turn{ref.turns}", f"turn{ref.turns}"
    seen: list[Signal | OutputBatch] = []
    if not positions.get(name):
        output = OutputItem(type=LineType.TEXT, text=message)
        seen.append(OutputBatch(items=(output,), positions={name: 1}))
    seen.append(ResultSeen(key=f"{key}:result", text=message))
    seen.append(Exited(key=f"{key}:exit", exit=Exit(code=0), drained=True))
    return seen


def _output(step: ScriptStep, played: _Played) -> tuple[OutputItem, ...]:
    """What a step says, as a plain program would."""
    for name, value in step.items():
        match name:
            case "print":
                return tuple(line_items(str(value).encode("utf-8", "replace"), is_stderr=False))
            case "said":
                event = event_from(value)
                return (output_item_of(event),) if _may_happen(event, played) else ()
            case "tool" if played.may_use(str(value)):
                return (output_item_of(ToolEvent(name=str(value))),)
    return ()


def _may_happen(event: AnyEvent, played: _Played) -> bool:
    return not isinstance(event, ToolEvent) or played.may_use(event.name)


def _signal(name: str, value: object, key: str) -> Signal | None:
    match name:
        case "result":
            return ResultSeen(key=key, text=str(value))
        case "error":
            return ResultSeen(key=key, text="", is_error=True, error=str(value))
        case "report":
            return ReportSeen(key=key, report=msgspec.convert(value, Report))
        case "progress":
            return ProgressSeen(key=key, progress=msgspec.convert(value, Progress))
        case "usage":
            return UsageSeen(key=key, usage=msgspec.convert(value, Usage))
        case "tool":
            return ToolSeen(key=key, name=str(value))
        case _:
            return None


def _script(options: Mapping[str, object]) -> list[ScriptStep]:
    script = options.get("script", [])
    if not isinstance(script, list) or not all(isinstance(step, dict) for step in script):
        raise ConfigError("script must be a list of tables")
    return script


def _steps_of(script: list[ScriptStep], attempt: int, *, continues: bool) -> list[ScriptStep]:
    chosen: list[ScriptStep] = []
    current, is_later = None, False
    for step in script:
        if "attempt" in step:
            current = _whole(step["attempt"])
        elif "continued" in step:
            current, is_later = None, True
        elif current in {None, attempt} and is_later is continues:
            chosen.append(step)
    return chosen


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _write(cwd: Path, value: object) -> None:
    if isinstance(value, dict):
        target = cwd / str(value["path"])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(str(value["text"]), "utf-8")
