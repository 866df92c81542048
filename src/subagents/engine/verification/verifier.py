"""Runs a contract's checks within their one time limit; says what is true, decides nothing else.

All checks of a run are one piece of work for the ``OffLoop``, files first, then commands. Three
things keep it bounded. What runs in its own process (commands, schemas, big JSON) is killed as a
group when the time is over. What reads in chunks looks whether it was abandoned. What is stuck
inside the kernel (a dead network disk) cannot be ended by anything: the verdict does not wait for
it, its daemon thread is left behind. Give the ``Verifier`` its own thread pool, so that 32 such
threads would stop verification, which then says so, and nothing else.
"""

import asyncio
import hashlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec

from subagents.domain.redaction.redact import MARGIN_BYTES, ending
from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.outcome import Check, CheckType, Verdict, Verification, verdict_of
from subagents.domain.run.run import Attempt, ReportStatus
from subagents.domain.run.spec import Artifact, Checks, Contract
from subagents.domain.run.values import replace
from subagents.engine.verification.artifacts import (
    SHOWN_MAX,
    Question,
    check_artifact,
    compile_regex,
    compile_schema,
    needs_own_process,
)
from subagents.engine.verification.command_sandbox import CommandSandbox
from subagents.engine.verification.contract_files import (
    ACCEPTED,
    Abandoned,
    has_changed,
    take_baseline,
)
from subagents.engine.verification.file_trees import TREE_FILES_MAX, TooManyFiles, matching_files
from subagents.engine.verification.work_root import FileFault, WorkRoot
from subagents.errors import ContractError
from subagents.ports import Before, Clock, OffLoop
from subagents.process_group import kill_group
from subagents.text import counted, listed, one_line

OUTPUT_TAIL_BYTES: Final = 2048
DIGEST_FILES_MAX: Final = 20_000
"""So many files of a work directory are compared, from one check of the contract to the next."""
ANSWER_BYTES_MAX: Final = 256 * 1024
"""The longest answer of the checker's process: a Check with a path and a few messages."""
SETTLE_S: Final = 1.0
"""How long work that was killed at the time limit has to hand in its last words."""
_POLL_S: Final = 0.05
_COMMAND_NOT_FOUND: Final = 127
_COMMAND_NOT_EXECUTABLE: Final = 126
_ENVIRONMENT: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")
"""Plus ``LC_*``: what a program needs to run; our own secrets never reach a command."""

REPORT_TARGET: Final = "report_completion"
SUMMARY_CHARS_MAX: Final = 500
SAID_CHARS_MAX: Final = 200

_file_pattern: Final = partial(pattern_of, field="path")
_tree_pattern: Final = partial(pattern_of, field="path", whole_directories=True)


def check_schemas(contract: Checks, *, field: str = "verification") -> None:
    """Refuse JSON Schemas and patterns that no file could be checked by; call it at the spawn.

    Blocking: mostly under 1 ms, 20 ms for an ordinary schema of the largest size allowed, but one
    made of thousands of large patterns can take seconds, so run it through the ``OffLoop``.

    Raises:
        ContractError: Names the field, e.g. ``verification.artifacts[0].schema is not a valid …``.
    """
    for index, artifact in enumerate(contract.artifacts):
        name = "schema"
        try:
            if artifact.schema is not None:
                compile_schema(artifact.schema)
            name = "regex"
            if artifact.regex is not None:
                compile_regex(artifact.regex)
        except ContractError as error:
            raise ContractError(
                f"{field}.artifacts[{index}].{name} {error.message}", hint=error.hint
            ) from error


class Verifier:
    """Runs contracts.

    Args:
        off_loop: Runs the blocking part; a pool that nothing else depends on.
        clock: Times the limit and dates the verdict.
        commands_allowed: ``verification.dangerously_allow_validation_commands``. When it was
            switched off after a contract with commands was accepted, they are not run and the
            verdict is ``could_not_check``. The operator's own need no such leave.
        sandbox: Around commands; None = none.
    """

    def __init__(
        self,
        off_loop: OffLoop,
        clock: Clock,
        *,
        commands_allowed: bool,
        sandbox: CommandSandbox | None = None,
    ) -> None:
        self._sandbox = sandbox or CommandSandbox(is_on=False)
        self._off_loop = off_loop
        self._clock = clock
        self._commands_allowed = commands_allowed

    async def verify(
        self,
        contract: Contract,
        *,
        root: WorkRoot,
        attempt: Attempt,
        marker_env: Mapping[str, str],
        baseline: Baseline | None = None,
        commands_trusted: bool = False,
        compares: bool = False,
    ) -> Verification:
        """Check the output of an ended attempt; repeating it is safe as far as its commands are.

        Args:
            contract: Validated at the spawn.
            root: Where its files are; commands run there.
            attempt: The ended one, with its completion report and what came after that.
            marker_env: Added to the environment of commands (``SUBAGENTS_RUN_ID``, …), by which
                the sweep finds their processes.
            baseline: Its files before the work, as ``before`` gave it; None = they count as they
                are.
            commands_trusted: They are the operator's.
            compares: Tell apart what all files are, before the checks and after them.

        Returns:
            One check per artifact, path, command and required report, in that order, after at most
            ``verification_timeout_ms`` and ``SETTLE_S``, each look at all files as long as well.
            Checks not finished in time are failed.
        """
        batch = _Batch(
            contract,
            root,
            marker_env,
            baseline=baseline,
            sandbox=self._sandbox if commands_trusted or self._commands_allowed else None,
        )
        found = await self._digest(contract, root) if compares else None
        checks = await self._checked(batch)
        if contract.require_completion_report:
            checks.append(check_report(attempt))
        return Verification(
            verdict=verdict_of(checks),
            checks=tuple(checks),
            verified_at_ms=self._clock.now_ms(),
            files_found=found,
            files_left=None if found is None else await self._digest(contract, root),
        )

    async def _digest(self, contract: Contract, root: WorkRoot) -> str | None:
        """What all files are, in one text; None = they are too many, or cannot be read in time.

        Its reports of tests are left out: each says when it was written.
        """
        limit_ms = contract.verification_timeout_ms
        every = Contract(must_not_change=("**",), verification_timeout_ms=limit_ms)
        looking = _Looking(every, root, files_max=DIGEST_FILES_MAX)
        await self._run(looking)
        reports = {each.path for each in contract.artifacts if each.junit}
        files = [each for each in looking.found.files if each.path not in reports]
        content = repr([(each.path, each.size, each.sha256) for each in files]).encode()
        return None if looking.found.unknown else hashlib.sha256(content).hexdigest()

    async def before(self, contract: Contract, root: WorkRoot) -> Before:
        """Look at the contract's files before the work.

        Within the contract's time; files that it was too short for are unknown.
        """
        looking = _Looking(contract, root)
        if looking.has_work:
            await self._run(looking)
        is_open = looking.has_work or not contract.artifacts or contract.require_completion_report
        # Neither is asked here: commands may be meant to run once, a judge looks at finished work.
        if is_open or contract.commands or contract.judge is not None:
            return Before(looking.found)
        checks = await self._checked(_Batch(contract, root, {}))
        return Before(looking.found, is_vacuous=verdict_of(checks) is Verdict.PASSED)

    async def _checked(self, batch: "_Batch") -> list[Check]:
        if batch.has_work:
            await self._run(batch)
        return batch.settled()

    async def _run(self, batch: "_Batch | _Looking") -> None:
        """Run it on a thread for its time limit at most, after which it is abandoned."""
        work = asyncio.ensure_future(self._off_loop(batch.run))
        try:
            if not await self._done_within(work, batch.limit_ms / 1000):
                batch.abandon()
                await self._done_within(work, SETTLE_S)
            if work.done():
                work.result()
        finally:
            # Also when the daemon stops in the middle: the checks are run again at the restart.
            batch.abandon()
            work.cancel()

    async def _done_within(self, work: "asyncio.Future[None]", seconds: float) -> bool:
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return work.done()


def check_report(attempt: Attempt) -> Check:
    """Whether the worker's last act was to report completion.

    By tool it must be the last tool call; as text, only text may have come after it.
    """
    report, origin = attempt.reported.report, "its text" if attempt.reported.is_text else "tool"
    reason = None
    if report is None:
        problem = f": {attempt.reported.problem}" if attempt.reported.problem else ""
        reason = f"The worker gave no completion report{problem}"
    elif report.status is ReportStatus.FAILED:
        reason = f"The worker reported failed: {report.summary[:SUMMARY_CHARS_MAX]}"
    elif not attempt.last.is_report:
        what = "last word" if attempt.reported.is_text else "last tool call"
        after = f": it used {attempt.last.tool} after that" if attempt.last.tool else ""
        reason = f"The completion report was not the worker's {what}{after}"
    return Check(
        type=CheckType.COMPLETION_REPORT,
        target=REPORT_TARGET,
        passed=reason is None,
        reason=reason,
        evidence=None if report is None else f"status {report.status}, by {origin}",
    )


def _command_environment(marker_env: Mapping[str, str]) -> dict[str, str]:
    # A contract's commands are the operator's, what they run is the worker's.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or name.startswith("LC_")
    }
    return {"PATH": os.defpath, **kept, **marker_env}


class _Looking:
    """Fingerprints what a contract names before the work."""

    def __init__(
        self, contract: Contract, root: WorkRoot, *, files_max: int = TREE_FILES_MAX
    ) -> None:
        fresh = [each for each in contract.artifacts if contract.is_fresh(each)]
        self.limit_ms = contract.verification_timeout_ms
        self._paths = [each.path for each in fresh if not each.is_glob]
        self._patterns = [_file_pattern(each.path) for each in fresh if each.is_glob]
        self._patterns += map(_tree_pattern, (*contract.must_change, *contract.must_not_change))
        names = (*self._paths, *(each.text for each in self._patterns))
        self.found = Baseline(unknown=names)
        self._root, self._files_max = root, files_max
        self._deadline = time.monotonic() + self.limit_ms / 1000
        self._is_abandoned = False

    @property
    def has_work(self) -> bool:
        """Whether something counts only as a change."""
        if not (self._paths or self._patterns):
            self.found = Baseline()
            return False
        return True

    def run(self) -> None:
        paths, unknown = [*self._paths], list[str]()
        for pattern in self._patterns:
            try:
                paths += matching_files(
                    pattern, self._root, abandoned=self._is_over, files_max=self._files_max
                )
            except (TooManyFiles, Abandoned):
                unknown.append(pattern.text)
            except FileFault:
                continue  # no file of the contract, as the check will say
        self.found = take_baseline(paths, self._root, unknown=unknown, abandoned=self._is_over)

    def abandon(self) -> None:
        self._is_abandoned = True

    def _is_over(self) -> bool:
        return self._is_abandoned or time.monotonic() >= self._deadline


class _Step(NamedTuple):
    """One check that is yet to be made."""

    type: CheckType
    target: str
    make: Callable[[], Check]


class _Batch:
    """The checks of one contract."""

    def __init__(
        self,
        contract: Contract,
        root: WorkRoot,
        marker_env: Mapping[str, str],
        *,
        baseline: Baseline | None = None,
        sandbox: CommandSandbox | None = None,
    ) -> None:
        # The loop's timer ends the checks; this second clock does when the loop cannot.
        self.limit_ms = contract.verification_timeout_ms
        deadline = time.monotonic() + self.limit_ms / 1000
        self.processes = _Processes(deadline)
        self._contract = contract
        self._root = root
        self._marker_env = marker_env
        self._before = Before(baseline or Baseline()).files
        self._unknown = frozenset(baseline.unknown if baseline else ())
        self._sandbox = sandbox
        self._checks: list[Check] = []
        self._begun = False
        # In the order of the verdict: files before commands, which may change them.
        self._steps = [*self._steps_of(contract)]

    def _steps_of(self, contract: Contract) -> Iterator[_Step]:
        for artifact in contract.artifacts:
            make = self._files if artifact.is_glob else self._artifact
            yield _Step(CheckType.ARTIFACT, artifact.path, partial(make, artifact))
        for changes, patterns in ((True, contract.must_change), (False, contract.must_not_change)):
            for text in patterns:
                yield _Step(CheckType.CHANGE, text, partial(self._change, text, changes=changes))
        for command in contract.commands:
            yield _Step(CheckType.COMMAND, command, partial(self._command, command))

    @property
    def has_work(self) -> bool:
        return bool(self._steps)

    def abandon(self) -> None:
        self.processes.abandon()

    def run(self) -> None:
        self._begun = True
        for step in self._steps:
            if self.processes.abandoned():
                return
            try:
                found = step.make()
            except Abandoned:
                return
            except TooManyFiles:
                why = f"{step.target} matches more than {TREE_FILES_MAX} files"
                found = _unchecked(step.type, step.target, why)
            except FileFault as fault:
                reason = f"{step.target} {fault}"
                found = Check(type=step.type, target=step.target, passed=False, reason=reason)
            self._checks.append(found)

    def settled(self) -> list[Check]:
        """Every check, also those not finished; call it when all is done or the time is over."""
        checks = self._checks.copy()
        for kind, target, _ in self._steps[len(checks) :]:
            checks.append(
                Check(type=kind, target=target, passed=False, reason=self._timed_out)
                if self._begun
                else _unchecked(kind, target, f"no thread was free within {self.limit_ms} ms")
            )
        return checks

    @property
    def _timed_out(self) -> str:
        return f"timed out after {self.limit_ms} ms"

    def _artifact(self, artifact: Artifact) -> Check:
        before = None
        if self._contract.is_fresh(artifact):
            if artifact.path in self._unknown:
                return _unknown(CheckType.ARTIFACT, artifact.path)
            before = self._before.get(artifact.path)
        if not needs_own_process(artifact, self._root):
            return check_artifact(
                artifact, self._root, before=before, abandoned=self.processes.abandoned
            )
        question = Question(
            artifact=artifact,
            root=self._root,
            limit_s=math.ceil(self.limit_ms / 1000 + SETTLE_S),
            before=before,
        )
        # In a file: a pipe would have to be fed while the output is read.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(msgspec.json.encode(question))
            stdin.seek(0)
            try:
                ended = self.processes.run(
                    _checker_program(),
                    env={**os.environ, **self._marker_env},
                    stdin=stdin,
                    tail_bytes=ANSWER_BYTES_MAX,
                )
            except OSError as error:
                return _unchecked(
                    CheckType.ARTIFACT, artifact.path, f"could not start the checker: {error}"
                )
        if self.processes.abandoned():
            raise Abandoned
        try:
            return msgspec.json.decode(ended.output, type=Check)
        except msgspec.DecodeError:
            why = f"the checker ended with {ended.code}: {_text(ended.output, 300)}"
            return _unchecked(CheckType.ARTIFACT, artifact.path, why)

    def _files(self, artifact: Artifact) -> Check:
        """So many files match, are new where they must be, and each is what is asked for."""
        kind, target = CheckType.ARTIFACT, artifact.path
        is_fresh = self._contract.is_fresh(artifact)
        if is_fresh and target in self._unknown:
            return _unknown(kind, target)
        paths = matching_files(
            _file_pattern(target), self._root, abandoned=self.processes.abandoned
        )
        # Files of before the run fulfil nothing, but they count where there may be only so many.
        old = [path for path in paths if is_fresh and not self._is_new(path)]
        new = [path for path in paths if path not in {*old}]
        problems = []
        if len(new) < (artifact.min_files or 0):
            were = f" ({len(old)} were there before the run and did not change; {ACCEPTED})"
            few = f"Files {target}: {len(new)} found, minimum {artifact.min_files} required"
            problems.append(few + were if old else few)
        if artifact.max_files is not None and len(paths) > artifact.max_files:
            problems.append(f"Files {target}: {len(paths)} found, maximum {artifact.max_files}")
        each_of_them = replace(artifact, min_files=None, max_files=None)
        checks = [self._artifact(replace(each_of_them, path=path)) for path in new]
        bad = [check for check in checks if not check.passed]
        failed = [*problems, *(check for check in bad if not check.could_not_check)]
        problems += [check.reason or "failed" for check in bad[:SHOWN_MAX]]
        if len(bad) > SHOWN_MAX:
            problems.append(f"{len(bad) - SHOWN_MAX} more files")
        return Check(
            type=kind,
            target=target,
            passed=not problems,
            reason="; ".join(problems) or None,
            evidence=f"{counted(len(new), 'file')}" + (f", {len(old)} old" if old else ""),
            could_not_check=bool(bad) and not failed,
        )

    def _is_new(self, path: str) -> bool:
        before = self._before.get(path)
        return before is None or has_changed(path, before, self._root, self.processes.abandoned)

    def _change(self, text: str, *, changes: bool) -> Check:
        """Something changed among the files that a pattern matches, or nothing did."""
        kind, pattern = CheckType.CHANGE, _tree_pattern(text)
        if text in self._unknown:
            return _unknown(kind, text)
        now = matching_files(pattern, self._root, abandoned=self.processes.abandoned)
        before = [path for path in self._before if pattern.matches(path)]
        gone = [path for path in before if path not in {*now}]
        added = [path for path in now if path not in self._before]
        others = [path for path in now if path in self._before and self._is_new(path)]
        found = [
            *(f"{path} deleted" for path in gone),
            *(f"{path} added" for path in added),
            *(f"{path} modified" for path in others),
        ]
        told = listed(found, SHOWN_MAX)
        reason = None
        if changes and not found:
            reason = f"Nothing changed in {text}"
        elif found and not changes:
            reason = f"Changed in {text}, which must not change: {told}"
        return Check(
            type=kind,
            target=text,
            passed=reason is None,
            reason=reason,
            evidence=told or "nothing changed",
        )

    def _command(self, command: str) -> Check:
        if self._sandbox is None:
            return _unchecked(
                CheckType.COMMAND,
                command,
                "not run: verification.dangerously_allow_validation_commands is off",
            )
        walls = self._sandbox.around(Path(self._root.path))
        try:
            ended = self.processes.run(
                [*walls.argv, "/bin/sh", "-c", command],
                cwd=Path(self._root.path),
                env=_command_environment(self._marker_env),
                tail_bytes=OUTPUT_TAIL_BYTES + MARGIN_BYTES,
            )
        except OSError as error:
            return _unchecked(CheckType.COMMAND, command, f"could not start the command: {error}")
        output = _text(ended.output, OUTPUT_TAIL_BYTES)
        evidence = "\n".join(filter(None, (f"exit {ended.code}, {walls.said}", output)))
        last = output.rpartition("\n")[2]
        said = f": {one_line(last, SAID_CHARS_MAX)}" if last else ""
        if self.processes.abandoned() and ended.killed:
            reason: str | None = self._timed_out
        elif ended.code in (_COMMAND_NOT_FOUND, _COMMAND_NOT_EXECUTABLE):
            why = "was not found" if ended.code == _COMMAND_NOT_FOUND else "is not executable"
            return _unchecked(
                CheckType.COMMAND,
                command,
                f"a program of the command {why} (exit {ended.code})",
                evidence=evidence,
            )
        elif ended.code < 0:
            reason = f"The command was killed by signal {-ended.code}"
        else:
            reason = f"The command exited with {ended.code}, expected 0{said}"
            reason = reason if ended.code else None
        return Check(
            type=CheckType.COMMAND,
            target=command,
            passed=reason is None,
            reason=reason,
            evidence=evidence,
        )


def _unknown(kind: CheckType, target: str) -> Check:
    why = f"{target} could not be read whole before the run: whether it changed is not known"
    return _unchecked(kind, target, why)


def _unchecked(kind: CheckType, target: str, why: str, *, evidence: str | None = None) -> Check:
    return Check(
        type=kind, target=target, passed=False, reason=why, evidence=evidence, could_not_check=True
    )


def _text(output: bytes, bytes_max: int) -> str:
    return ending(output, bytes_max).replace("\0", "").strip()


def _checker_program() -> list[str]:
    """``python -m subagents.engine.verification.artifacts`` with our module path.

    ``-P`` and the given path keep a ``json.py`` in the working directory out of it.
    """
    program = (
        f"import json, sys; sys.path[:] = json.loads({json.dumps(json.dumps(sys.path))});"
        " from subagents.engine.verification.artifacts import main; main()"
    )
    return [sys.executable or "python3", "-P", "-c", program]


class _Ended(msgspec.Struct, frozen=True):
    code: int
    """Exit status, or minus the signal."""
    output: bytes
    """The tail of standard output and error together."""
    killed: bool
    """It was killed by us, at the time limit."""


class _Processes:
    """Runs one process group after the other; kills the current one when abandoned.

    Args:
        deadline: Of ``time.monotonic``, seconds; from then on everything is abandoned.
    """

    def __init__(self, deadline: float) -> None:
        self._lock = threading.Lock()
        self._current: subprocess.Popen[bytes] | None = None
        self._deadline = deadline
        self._abandoned = False

    def abandoned(self) -> bool:
        return self._abandoned or time.monotonic() >= self._deadline

    def abandon(self) -> None:
        """Kill what runs, and start nothing more. Does not block; safe from any thread."""
        with self._lock:
            self._abandoned = True
            if self._current is not None:
                kill_group(self._current.pid)

    def run(
        self,
        argv: Sequence[str],
        *,
        tail_bytes: int,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: IO[bytes] | None = None,
    ) -> _Ended:
        """Run to the end in a new session; whatever it leaves in its group is killed.

        Raises:
            OSError: It could not be started.
        """
        read_end, write_end = os.pipe()
        try:
            try:
                # Not under the lock: starting can hang on a dead disk, and the loop takes it too.
                process = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL if stdin is None else stdin,
                    stdout=write_end,
                    stderr=write_end,
                    start_new_session=True,
                )
            finally:
                os.close(write_end)
            with self._lock:
                self._current = process
                if self.abandoned():
                    kill_group(process.pid)
            output = self._follow(process, read_end, tail_bytes)
        finally:
            os.close(read_end)
        killed = process.returncode == -signal.SIGKILL and self.abandoned()
        return _Ended(code=process.returncode, output=output, killed=killed)

    def _follow(self, process: "subprocess.Popen[bytes]", read_end: int, tail_bytes: int) -> bytes:
        """Read until the leader has ended, not until end of file: children may keep it open."""
        os.set_blocking(read_end, False)
        readable = select.poll()  # not select(): that one takes no descriptor above 1023
        readable.register(read_end, select.POLLIN)
        tail = bytearray()
        at_end = False
        pause_s = _POLL_S / 64
        while not self._reaped(process):
            if self.abandoned():
                self.abandon()
            if at_end:  # the leader mostly ends right after its output
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _POLL_S)
            elif readable.poll(_POLL_S * 1000):
                at_end = _read_some(read_end, tail, tail_bytes)
        # A process that left the group may write on for ever: take what is there, briefly.
        deadline = time.monotonic() + _POLL_S
        while not at_end and time.monotonic() < deadline and readable.poll(0):
            at_end = _read_some(read_end, tail, tail_bytes)
        return bytes(tail)

    def _reaped(self, process: "subprocess.Popen[bytes]") -> bool:
        with self._lock:  # so that no signal goes to a process number that is free again
            if process.poll() is None:
                return False
            self._current = None
            kill_group(process.pid)
            return True


def _read_some(descriptor: int, tail: bytearray, tail_bytes: int) -> bool:
    """Move what is there into ``tail``; True at end of file."""
    try:
        chunk = os.read(descriptor, 65536)
    except BlockingIOError:
        return False
    tail += chunk
    del tail[: max(0, len(tail) - tail_bytes)]
    return not chunk
