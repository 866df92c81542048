"""What workers say, made for tests, and what the detectors make of it."""

from subagents.domain.alerts import detectors
from subagents.domain.alerts.detectors import Watch
from subagents.domain.run.alert import Alert, AlertRules
from subagents.domain.run.worker_output import (
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
    PlanItem,
    PlanStatus,
    ToolUse,
)
from subagents.extensions.detectors.tool_findings import findings_of

RULES = AlertRules()
MINUTE = 60_000
START = detectors.begin(Watch(), attempt=1, at_ms=0)


def text(words: str = "hello") -> OutputItem:
    return OutputItem(type=LineType.TEXT, text=words)


def used(name: str = "Bash", **fields: object) -> OutputItem:
    return OutputItem(type=LineType.TOOL, text=name, tool=ToolUse(name=name, **fields))  # type: ignore[arg-type]


def shell(command: str, output: str = "", code: int | None = 0) -> OutputItem:
    return used(command=command, output=output, exit_code=code, is_error=bool(code))


def refused(message: str = "rate limited", retry: str | None = None) -> OutputItem:
    error = ApiError(message=message, retry=retry)
    return OutputItem(type=LineType.ERROR, text=message, api_error=error)


def context(tokens: int, window: int | None = 200_000, model: str | None = None) -> OutputItem:
    return OutputItem(
        type=LineType.SYSTEM, context=ContextUse(tokens=tokens, window=window, model=model)
    )


def plan(*items: tuple[str, str]) -> OutputItem:
    made = tuple(PlanItem(text=words, status=PlanStatus(status)) for words, status in items)
    return used("TodoWrite", plan=made)


def see(*said: OutputItem, watch: Watch = START, at_ms: int = 0) -> tuple[Watch, list[Alert]]:
    watch, alerts = detectors.observe(
        watch, said, at_ms=at_ms, rules=RULES, findings_of=findings_of
    )
    return watch, list(alerts)


def texts(*said: OutputItem) -> list[str]:
    return [each.text for each in see(*said)[1]]


def after(watch: Watch, now_ms: int, rules: AlertRules = RULES) -> tuple[Watch, list[Alert]]:
    watch, alerts = detectors.elapsed(watch, now_ms=now_ms, rules=rules)
    return watch, list(alerts)


def task(
    call_id: str, *, is_end: bool = False, agents: int = 1, team: str | None = None
) -> OutputItem:
    return used("Task", call_id=call_id, is_end=is_end, agents=agents, team=team)


def committed(message: str, where: str = "main abc1234") -> OutputItem:
    return shell(f"git commit -m '{message}'", f"[{where}] {message}\n 1 file changed")


LONG = "Ж" * 5_000 + "\n\x1b[31m\u202e" + "x" * 5_000
EVERYTHING = (
    refused(LONG, retry=LONG),
    used("Edit", path=f"/a/{LONG}"),
    plan((LONG, "completed")),
    context(199_000),
    used("Task", agents=3, team=LONG),
    text(),
    shell(f"git commit -m '{LONG}'", f"[main abc1234] {LONG}"),
    shell(f"make '{LONG}'", f"{LONG}.c:1:1: error: x", code=2),
    *[used(LONG, is_error=True, output=LONG)] * 3,
)
