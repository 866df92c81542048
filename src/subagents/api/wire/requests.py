"""Outside input, parsed once: JSON becomes domain values here, and nothing behind re-checks it.

Every refusal names the field by its path (``verification.artifacts[0].minItems``) and says what
is allowed; nothing was stored. HTTP and MCP share this file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from subagents.api.wire.decoding import (
    as_object,
    decode,
    one_of,
    parse_json,
    parse_object,
    refuse_unknown,
    shown,
    texts_in,
)
from subagents.domain.rules.parameter_checks import check_path, check_reachable, check_spec
from subagents.domain.run.caller_environment import CallerEnvironment, require_usable
from subagents.domain.run.parameter import Parameter, parameters, words
from subagents.domain.run.run import (
    Decision,
    Priority,
    Progress,
    ProgressLevel,
    Report,
    ReportedArtifact,
)
from subagents.domain.run.spec import (
    BATCH_RUNS_MAX,
    COST_USD_MAX,
    PLAN_NAME_CHARS_MAX,
    PRIORITY_MAX,
    TIMEOUT_SECONDS_MAX,
    TOKENS_MAX,
    RunSpec,
)
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import Value
from subagents.domain.text.report_text import REPORT_CHARS_MAX
from subagents.errors import SubagentsError, UsageError, together
from subagents.text import camel, parse_duration

WAIT_SECONDS_MAX: Final = 600
WAIT_RUNS_MAX: Final = 1000
UNTIL: Final = ("any", "all")
INBOX_LIMIT_MAX: Final = 1000
CANCEL_AFTER_MS_MAX: Final = 30 * 24 * 3_600_000
"""A delay that leaves time to undo; a schedule is for more."""
MESSAGE_CHARS_MAX: Final = 4000
"""The longest steer, notice, question, cancel reason or summary line of a report."""
ANSWER_CHARS_MAX: Final = 64 * 1024
METRICS_MAX: Final = 50
"""Metrics in one progress update."""
CONFIG_ENTRIES_MAX: Final = 500

T = TypeVar("T", bound=msgspec.Struct)
Seconds = Annotated[float, Meta(ge=0, le=TIMEOUT_SECONDS_MAX)]
Message = Annotated[str, Meta(min_length=1, max_length=MESSAGE_CHARS_MAX)]
LongText = Annotated[str, Meta(max_length=ANSWER_CHARS_MAX)]
Percent = Annotated[float, Meta(ge=0, le=100)]
MetricName = Annotated[str, Meta(min_length=1, max_length=100)]
MetricValue = Annotated[str, Meta(max_length=200)] | int | float


FLAGS: Final[Mapping[str, str]] = {
    "agent": "agent_id",
    "timeout": "run_timeout_seconds",
    "after": "depends_on",
    "include_result": "include_dependency_result",
    "accept_partial": "accept_partial_dependencies",
    "dependency_timeout": "dependency_timeout_seconds",
    "fallback_agent": "fallback_agent_id",
    "retry": "retry_count",
    "until_verified": "retry_until_verified",
    "backoff": "retry_backoff",
    "progress": "progress_reporting",
    "allow_tool": "tools_allow",
    "deny_tool": "tools_deny",
    "tag": "tags",
}
"""The names of flags, of those parameters that are called otherwise; both are taken everywhere."""
FLAG_FIELDS: Final = {camel(flag): camel(own) for flag, own in FLAGS.items()}
"""The same in JSON."""
_FLAG_NAMES: Final = frozenset(FLAG_FIELDS)
LISTS: Final = frozenset(each.name for each in parameters(RunSpec) if each.is_list)
_LIKE: Final[Mapping[str | None, Sequence[Parameter]]] = {
    # Not the structs in them: the contract of a judge has no judge.
    each.name: [one for one in each.inner if not one.inner]
    for each in parameters(RunSpec)
    if each.inner
}


class _Timed(NamedTuple):
    """A parameter that is a duration, or has some below it."""

    unit: str | None
    """``seconds`` or ``milliseconds`` when it is one."""
    inner: "Mapping[str, _Timed]"


def _timed_in(declared: Iterable[Parameter]) -> dict[str, _Timed]:
    found: dict[str, _Timed] = {}
    for each in declared:
        inner = _timed_in(each.inner or _LIKE.get(each.like, ()))
        if each.is_duration or inner:
            unit = each.unit if each.is_duration else None
            found[each.name.rpartition(".")[2]] = _Timed(unit, inner)
    return found


_TIMED: Final = _timed_in(parameters(RunSpec))

Action = Literal[
    "list",
    "status",
    "log",
    "steer",
    "interrupt",
    "kill",
    "pause",
    "resume",
    "why",
    "inbox",
    "answer",
    "result",
    "redeliver",
    "attention",
]
"""What the tool ``subagents`` does with a run."""


class Body(Value, frozen=True, forbid_unknown_fields=True):
    """A request's JSON object."""


class _Start(Body, frozen=True, kw_only=True):
    """What a call that starts runs brings along of its client."""

    cwd: str | None = None
    default_agent: str | None = None
    """The agent of a spec that names none, where the configuration has no default either."""
    environment: CallerEnvironment = CallerEnvironment()
    """Variables for its workers; taken from the operator only."""


class SpawnBody(_Start, frozen=True, kw_only=True):
    spec: RunSpec
    config_env: dict[str, str] = {}
    overrides: dict[str, object] = {}


class PlanLimit(Body, frozen=True):
    """What all runs of a plan, with those below them, may use together."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] | None = None
    max_total_tokens: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] | None = None
    """With those that came from a cache."""
    max_cost_usd: Annotated[float, msgspec.Meta(ge=0.000_001, le=COST_USD_MAX)] | None = None
    max_seconds: Annotated[float, msgspec.Meta(ge=0.001, le=TIMEOUT_SECONDS_MAX)] | None = None
    """Counted from the start of the plan; what has not ended by then is cancelled."""


Jobs = Annotated[int, msgspec.Meta(ge=1, le=BATCH_RUNS_MAX)]


class SpecsBody(_Start, frozen=True, kw_only=True):
    """Runs that start together or not at all."""

    specs: tuple[RunSpec, ...]
    budget: PlanLimit | None = None
    """A limit for all of them together; each can have its own as well."""
    jobs: Jobs | None = None
    """How many of them work at once at most; null = as many as their lanes have slots."""
    step_environments: tuple[dict[str, str], ...] = ()
    """Further variables for each step, stronger than those of all; none, or one for each spec."""


class PlanBody(SpecsBody, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=PLAN_NAME_CHARS_MAX)] | None = None
    """A name to find it by; several plans may have the same."""
    idempotency_key: str | None = None
    """The whole plan's key: with the same one within 24 hours it is not spawned again."""
    config_env: dict[str, str] = {}
    overrides: dict[str, object] = {}


class CancelBody(Body, frozen=True):
    """Of a cancel and of an interrupt."""

    reason: Message | None = None
    after: str | None = None
    """How long to wait, while it can be taken back (`DELETE`): `5s`, at most `30d`; null = now."""

    def after_ms(self) -> int:
        """How long to wait; 0 = not at all.

        Raises:
            UsageError: It is no duration, or too long.
        """
        found = 0 if self.after is None else parse_duration(self.after, field="after")
        if found > CANCEL_AFTER_MS_MAX:
            raise UsageError("after must be at most 30d", details={"field": "after"})
        return found


class SteerBody(Body, frozen=True):
    message: Message
    add_tokens: Annotated[int, Meta(ge=1, le=TOKENS_MAX)] | None = None
    """By so much the run's limits of tokens are raised."""
    add_cost_usd: Annotated[float, Meta(gt=0, le=COST_USD_MAX)] | None = None

    @property
    def added(self) -> Amounts | None:
        """By how much the run's budget is raised; None = it stays."""
        tokens = self.add_tokens or 0
        found = Amounts(tokens=tokens, total_tokens=tokens, cost_usd=self.add_cost_usd or 0)
        return found if found != Amounts() else None


class PriorityBody(Body, frozen=True):
    priority: Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]


class WaitBody(Body, frozen=True):
    run_ids: Annotated[tuple[str, ...], Meta(max_length=WAIT_RUNS_MAX)] = ()
    until: str = "any"
    timeout_seconds: Annotated[float, Meta(ge=0, le=WAIT_SECONDS_MAX)] = 30
    returns_on_needs: bool = False
    """Return also when a run asks something, is blocked, or its model's provider refuses."""


class InboxBody(Body, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=INBOX_LIMIT_MAX)] = 50
    message_ids: Annotated[tuple[str, ...], Meta(max_length=INBOX_LIMIT_MAX)] | None = None
    """Only these; None = whichever are unread."""


class AckBody(Body, frozen=True):
    message_ids: Annotated[tuple[str, ...], Meta(max_length=INBOX_LIMIT_MAX)]
    release: Annotated[
        tuple[str, ...],
        Meta(
            max_length=INBOX_LIMIT_MAX,
            description="Stay unread: the next reader is offered them at once",
        ),
    ] = ()


class Asking(Body, frozen=True):
    """What goes with a worker's question."""

    context: Annotated[LongText | None, Meta(description="What the requester must know")] = None
    options: Annotated[
        tuple[Message, ...], Meta(max_length=20, description="Possible answers")
    ] = ()
    timeout_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=TIMEOUT_SECONDS_MAX)] | None,
        Meta(description="How long the question stands; default until it is answered"),
    ] = None
    default_answer: Annotated[
        LongText | None, Meta(description="Taken when nobody answers in time")
    ] = None


class AskBody(Asking, frozen=True, kw_only=True):
    run_id: str
    question: Message


class RespondBody(Body, frozen=True):
    response: LongText
    decision: str = "answer"


Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]
Usd = Annotated[float, msgspec.Meta(ge=0, le=COST_USD_MAX)]


class HoldBody(Body, frozen=True):
    """What a worker's next request to its model may use, and what it used so far."""

    input_tokens: Tokens
    """The most that its input can take."""
    output_tokens: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]
    """The limit that it wants for the answer."""
    least_output_tokens: Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)] = 1
    """The lowest limit with which the request is worth starting."""
    input_usd: Usd | None = None
    """What the input costs at most; null = its price is unknown, and no cost can be kept free."""
    output_token_usd: Usd | None = None
    """What one token of the answer costs at most."""
    tokens_in: Tokens | None = None
    """What the attempt used so far."""
    tokens_out: Tokens | None = None
    tokens_cache_read: Tokens | None = None
    tokens_cache_write: Tokens | None = None
    cost_usd: Usd | None = None
    lost_tokens: Tokens = 0
    """Used, at most, by requests of the attempt that were never answered."""
    lost_cost_usd: Usd = 0
    firm: bool = True
    """The run ends where there is no room; false = the answer only says so."""


class NotifyBody(Body, frozen=True):
    message: Message
    priority: Annotated[str, words(Priority)] = "info"


class ProgressBody(Body, frozen=True):
    phase: Annotated[
        str, Meta(min_length=1, max_length=200, description="Current step, in a few words")
    ]
    percent_complete: Annotated[Percent | None, Meta(description="0 to 100")] = None
    level: Annotated[
        str | None, words(ProgressLevel, "L0 what runs now, L1 the plan changed, L2 detail")
    ] = None
    metrics: Annotated[
        dict[MetricName, MetricValue],
        Meta(max_length=METRICS_MAX, description="Names with text or number values"),
    ] = {}


WithSpecs = TypeVar("WithSpecs", bound=SpecsBody)


# -- whole requests -----------------------------------------------------------------------------


def parse_spawn(body: bytes) -> SpawnBody:
    """The body of ``POST /v1/runs``.

    Raises:
        UsageError: Names the field and what is allowed.
    """
    raw = as_object(parse_json(body))
    refuse_unknown(raw, SpawnBody)
    spec = parse_spec(raw.get("spec"), at="spec.") if "spec" in raw else None
    if spec is None:
        raise UsageError("spec is required: the spawn parameters", details={"field": "spec"})
    # The spec is parsed by itself, with its short forms; the rest needs some spec to be decoded.
    rest = decode({**raw, "spec": {"task": "-"}}, SpawnBody)
    check_surroundings(rest.cwd, rest.config_env, rest.overrides)
    require_usable(rest.environment)
    return msgspec.structs.replace(rest, spec=spec)


def parse_plan(body: bytes) -> PlanBody:
    """The body of ``POST /v1/plans``: 1 to 1000 specs, each as for a spawn.

    Raises:
        UsageError: Names the field (``specs[3].retryCount``) and what is allowed.
    """
    found = with_specs(body, PlanBody)
    if found.name is not None:
        check_reachable("name", found.name, others=())
    check_surroundings(found.cwd, found.config_env, found.overrides)
    return found


def with_specs(body: bytes, kind: type[WithSpecs]) -> WithSpecs:
    """A body of 1 to 1000 specs, each as for a spawn.

    Raises:
        UsageError: Names the field (``specs[3].retryCount``) and what is allowed.
    """
    raw = as_object(parse_json(body))
    refuse_unknown(raw, kind)
    specs = raw.get("specs")
    if not isinstance(specs, list) or not 1 <= len(specs) <= BATCH_RUNS_MAX:
        found = len(specs) if isinstance(specs, list) else "none"
        raise UsageError(
            f"specs must be a list of 1 to {BATCH_RUNS_MAX} runs, not {found}",
            hint="split a larger plan, or submit it in stages",
            details={"field": "specs"},
        )
    parsed = _parse_specs(specs)
    rest = decode({**raw, "specs": []}, kind)
    require_usable(rest.environment)
    if rest.step_environments and len(rest.step_environments) != len(parsed):
        raise UsageError(
            "stepEnvironments must have one entry for each of specs, or none",
            details={"field": "stepEnvironments"},
        )
    for own in rest.step_environments:
        require_usable(CallerEnvironment(given=own))
    return msgspec.structs.replace(rest, specs=parsed)


def _parse_specs(specs: Sequence[object]) -> tuple[RunSpec, ...]:
    """Each of them.

    Raises:
        UsageError: Names the first wrong field of each that has one.
    """
    found: list[RunSpec] = []
    refused: dict[int, SubagentsError] = {}
    for at, raw in enumerate(specs):
        try:
            found.append(parse_spec(raw, at=f"specs[{at}]."))
        except UsageError as error:
            refused[at] = error
    if refused:
        raise together(refused, of=len(specs))
    return tuple(found)


def parse_spec(raw: object, *, at: str = "") -> RunSpec:
    """Spawn parameters, as JSON values with the names of ``RunSpec``.

    Args:
        raw: A JSON object; a single text stands for a list of one, and a text such as ``5m`` for a
            number of seconds or milliseconds. With ``gate`` it needs no task.
        at: Put before every field name in messages.

    Raises:
        UsageError: Names the first wrong field and what is allowed.
    """
    if not isinstance(raw, dict):
        raise UsageError(f"{at.rstrip('.') or 'the spec'} must be an object of spawn parameters")
    if not _FLAG_NAMES.isdisjoint(raw):
        raw = own_names(raw, lambda name: FLAG_FIELDS.get(name, name), at)
    given = {
        name: [value] if name in LISTS and isinstance(value, str) else value
        for name, value in raw.items()
    }
    refuse_unknown(given, RunSpec, inside=at, flags=FLAG_FIELDS)
    if isinstance(run := given.get("forEach"), str):
        given["forEach"] = {"run": run}
    if "gate" in given:
        given = {"task": given["gate"], **given}
    spec = decode(_with_durations(given, _TIMED, at), RunSpec, at=at)
    check_spec(spec, field=lambda parameter: f"{at}{parameter.name}")
    return spec


def own_names(
    given: Mapping[str, object], own: Callable[[str], str], at: str = ""
) -> dict[str, object]:
    """What was given for a run, with the names of parameters in place of those of flags.

    Args:
        given: Under any of their names.
        own: The parameter that a name stands for.
        at: Put before each name in messages.

    Raises:
        UsageError: One is given by two names.
    """
    found: dict[str, str] = {}
    for name in given:
        if (other := found.setdefault(own(name), name)) != name:
            raise UsageError(
                f"{at}{other} and {at}{name} are the same: give one of them",
                details={"field": f"{at}{name}"},
            )
    return {parameter: given[name] for parameter, name in found.items()}


def _with_durations(
    raw: Mapping[str, object], timed: Mapping[str, _Timed], at: str
) -> dict[str, object]:
    """``raw`` with texts such as ``5m`` in the units of their parameters."""
    given = dict(raw)
    for name, value in raw.items():
        known = timed.get(name)
        if known is None:
            continue
        # Any other value is left to the decoder, which says what is wrong with it.
        if isinstance(value, str) and known.unit is not None:
            found_ms = parse_duration(value, field=f"{at}{name}")
            given[name] = found_ms / 1000 if known.unit == "seconds" else found_ms
        elif isinstance(value, dict):
            given[name] = _with_durations(value, known.inner, f"{at}{name}.")
    return given


def parse_body(body: bytes, kind: type[T]) -> T:
    """Any other body; an empty one is the empty object.

    Raises:
        UsageError: Names the field and what is allowed.
    """
    return decode(parse_object(body), kind)


def report_of(raw: Mapping[str, object]) -> Report:
    """The worker's report; every text together at most 64 Ki characters.

    Raises:
        UsageError: Names the field and what is allowed.
    """
    # Stored reports are read leniently, so the structs themselves refuse no name.
    refuse_unknown(raw, Report)
    artifacts = raw.get("artifacts")
    for index, artifact in enumerate(artifacts if isinstance(artifacts, list) else ()):
        if isinstance(artifact, dict):
            refuse_unknown(artifact, ReportedArtifact, inside=f"artifacts[{index}].")
    report = decode(raw, Report)
    if not report.summary.strip():
        raise UsageError("summary must not be empty", details={"field": "summary"})
    size = sum(len(text) for _, text in texts_in(raw, ""))
    if size > REPORT_CHARS_MAX:
        raise UsageError(f"the report must have at most {REPORT_CHARS_MAX} characters, not {size}")
    return report


def progress_of(raw: Mapping[str, object], *, now_ms: int) -> Progress:
    """The worker's progress, stamped with the time it arrived.

    Raises:
        UsageError: Names the field and what is allowed; a metric by its name.
    """
    metrics = raw.get("metrics")
    for name, value in metrics.items() if isinstance(metrics, dict) else ():
        # Checked here and not by a schema: tools' schemas cannot say "text or number".
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(value, str) and not is_number:
            raise UsageError(
                f"metrics.{shown(str(name))} must be text or a number",
                details={"field": f"metrics.{name}"},
            )
    given = decode(raw, ProgressBody)
    if given.level is not None:
        one_of("level", given.level, [*ProgressLevel])
    return Progress(
        phase=given.phase,
        percent_complete=given.percent_complete,
        updated_at_ms=now_ms,
        level=None if given.level is None else ProgressLevel(given.level),
        metrics=given.metrics,
    )


def parse_decision(word: str) -> Decision:
    """What an answer may decide; the other decisions are the engine's own."""
    allowed = (Decision.ANSWER, Decision.APPROVE, Decision.DENY)
    return Decision(one_of("decision", word, allowed))


def check_surroundings(
    cwd: str | None, config_env: Mapping[str, str], overrides: Mapping[str, object]
) -> None:
    if cwd is not None:
        check_path("cwd", cwd)
        if not Path(cwd).is_absolute():
            raise UsageError(f'cwd must be an absolute path, not "{shown(cwd)}"')
    for field, entries in (("configEnv", config_env), ("overrides", overrides)):
        if len(entries) > CONFIG_ENTRIES_MAX:
            raise UsageError(
                f"{field} must have at most {CONFIG_ENTRIES_MAX} entries, not {len(entries)}"
            )
