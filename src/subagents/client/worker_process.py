"""A worker function in its process: found, given its task, run, and its end reported."""

import asyncio
import contextlib
import inspect
import signal
import sys
import traceback
import types
from collections.abc import Callable, Coroutine, Iterable
from importlib import import_module
from pathlib import PurePath
from typing import Any, Final, NoReturn, get_type_hints

import msgspec

from subagents.client.worker_function import MARK, LineOutput, WorkerContext, emit
from subagents.errors import EXIT_FAILED, EXIT_OK, SubagentsError, UsageError
from subagents.runtimes.output.worker_events import ErrorEvent, ResultEvent
from subagents.text import one_line

REASON_CHARS_MAX: Final = 500
TRACE_CHARS_MAX: Final = 8_000
"""How much of a traceback's end is kept: a line of the log holds no more."""
TERMINATED: Final = 128 + signal.SIGTERM


def work(path: str, task: str | None = None) -> int:
    """Run the function on the task of this process's run, and report how it ended.

    Args:
        path: ``MODULE:FUNCTION``.
        task: Instead of the run's, to try it by hand.

    Returns:
        The exit code: 0; tried by hand, 1 when it failed.

    Raises:
        UsageError: Neither is there a run nor a task.
    """
    context = WorkerContext.of_run() if task is None else WorkerContext(task)
    has_run = task is None
    signal.signal(signal.SIGTERM, _terminated)
    # By lines: what it prints is in the log at once.
    sys.stdout = LineOutput(sys.stdout.buffer, errors="backslashreplace", line_buffering=True)
    try:
        function = found(path)
        _give(_called(function, _arguments(function, context)), has_run=has_run)
    except Exception as error:  # noqa: BLE001  whatever it is, it is why the run failed
        return _failed(error, has_run=has_run)
    return EXIT_OK


def found(path: str) -> Callable[..., object]:
    """The worker function of that name, its module imported.

    Raises:
        UsageError: There is no such module or function, or it is no worker.
        Exception: What the module itself raises.
    """
    module_name, _, name = path.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        raise UsageError(
            f'a worker is MODULE:FUNCTION, for example jobs:count_words, not "{path}"',
            details={"field": "worker"},
        )
    # As with `python -m`: the command's own directory is in its place otherwise.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"there is no module {error.name} for the worker {path}: not in the working directory,"
            f" PYTHONPATH or the packages of {sys.executable}",
            hint="begin `command` with the Python that has it (python -m subagents worker …), or"
            " set PYTHONPATH in the agent's `env`",
        ) from None
    function: Callable[..., object] | None = getattr(module, name, None)
    workers = [each for each, value in vars(module).items() if hasattr(value, MARK)]
    if name not in workers or function is None:
        problem = "has no function" if function is None else "does not decorate with @worker:"
        has = f"its workers: {', '.join(workers)}" if workers else "it has no worker"
        raise UsageError(
            f"module {module_name} {problem} {name}; {has}", details={"field": "worker"}
        )
    return function


def _arguments(function: Callable[..., object], context: WorkerContext) -> dict[str, object]:
    """What to call it with.

    Raises:
        UsageError: It takes something else than a task, or the task is not of its type.
    """
    hints = get_type_hints(function)
    given: dict[str, object] = {}
    tasks = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is WorkerContext:
            given[name] = context
        elif parameter.default is parameter.empty and parameter.kind in {
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        }:
            tasks.append(name)
    if len(tasks) > 1:
        raise UsageError(
            f"a worker takes one task, not {' and '.join(tasks)}",
            hint="take one parameter whose type has these fields, and give the task as JSON",
        )
    for name in tasks:
        given[name] = _task_as(hints.get(name, str), context.task)
    return given


def _task_as(kind: Any, task: str) -> object:
    if kind is str:
        return task
    try:
        return _validated(kind, task)
    except (TypeError, ValueError) as error:
        hint = "a worker whose module imports pydantic takes whatever pydantic validates"
        raise UsageError(
            f"the task is no {_name(kind)}: {error}",
            hint=hint if isinstance(error, TypeError) else None,
            details={"field": "task"},
        ) from None


def _validated(kind: Any, task: str) -> object:
    """The task as a value of that type; it is JSON, but a path, a date or a word needs no quotes.

    Where the worker's module uses pydantic, its types may have rules that only pydantic knows.

    Raises:
        TypeError: Nothing can be made a value of that type.
        ValueError: The task is none; the message completes the name of the type.
    """
    if pydantic := sys.modules.get("pydantic"):
        return _validated_by(pydantic.TypeAdapter(kind), task)
    try:
        value = msgspec.json.decode(task)
    except msgspec.DecodeError:
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(task, kind, strict=False, dec_hook=_made)
        raise
    return msgspec.convert(value, kind, strict=False, dec_hook=_made)


def _made(kind: Any, value: object) -> object:
    """A value of a type that ``msgspec`` does not know."""
    if kind is object:
        return value
    if isinstance(kind, type) and issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise TypeError(f"no value of the type {_name(kind)} can be made of JSON")


def _validated_by(adapter: Any, task: str) -> object:
    try:
        return adapter.validate_json(task)
    except ValueError as error:
        problem = error.errors(include_url=False)[0]  # type: ignore[attr-defined]  # pydantic's
        if problem["type"] == "json_invalid":
            with contextlib.suppress(ValueError):
                return adapter.validate_strings(task)
        where = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{where}: {problem['msg']}" if where else problem["msg"]) from None


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


def _called(function: Callable[..., object], arguments: dict[str, object]) -> object:
    found = function(**arguments)
    return asyncio.run(_cancellable(found)) if inspect.iscoroutine(found) else found


async def _cancellable(work: Coroutine[object, object, object]) -> object:
    """Await it; a SIGTERM cancels it, so that its ``finally`` blocks run.

    Raises:
        SystemExit: It was.
    """
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


def _terminated(_number: int, _frame: types.FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)


def _give(value: object, *, has_run: bool) -> None:
    """Make the value the result; None = what the function printed is the result.

    Raises:
        UsageError: It is too long.
        Exception: It cannot be JSON.
    """
    if value is None:
        sys.stdout.flush()
        return
    text = value if isinstance(value, str) else _json(value)
    if has_run:
        emit(ResultEvent(text=text.encode("utf-8", "replace").decode()))
    else:
        sys.stdout.write(f"{text}\n")


def _json(value: object) -> str:
    if pydantic := sys.modules.get("pydantic"):
        return str(pydantic.TypeAdapter(Any).dump_json(value), "utf-8")
    return msgspec.json.encode(value, enc_hook=_plain).decode()


def _plain(value: object) -> object:
    """What stands in JSON for a value that ``msgspec`` does not know."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a result cannot be a {type(value).__name__}")


def _failed(error: Exception, *, has_run: bool) -> int:
    """Report why it failed: in short as the result, and where it was raised in the log.

    Returns:
        The exit code. For a run it is 0, since the result says more: of a program that ends with
        another code, the code would be the reason.
    """
    if isinstance(error, SubagentsError):
        said, trace = "; ".join(filter(None, (str(error), error.hint))), ""
    else:
        said = "".join(traceback.format_exception_only(error))
        trace = "".join(traceback.format_exception(error.with_traceback(_own(error))))
    reason = one_line(said.encode("utf-8", "replace").decode(), REASON_CHARS_MAX)
    if not has_run:
        sys.stderr.write(trace or f"{reason}\n")
        return EXIT_FAILED
    if trace:
        emit(ErrorEvent(text=trace[-TRACE_CHARS_MAX:].encode("utf-8", "replace").decode()))
    emit(ResultEvent(text=reason, is_error=True, error=reason))
    return EXIT_OK


def _own(error: Exception) -> types.TracebackType | None:
    """Where the function's own lines begin in a traceback; all of it when none is its own."""
    frame = error.__traceback__
    while frame is not None:
        module = str(frame.tb_frame.f_globals.get("__name__"))
        if module != __name__ and module.partition(".")[0] not in {"asyncio", "importlib"}:
            return frame
        frame = frame.tb_next
    return error.__traceback__
