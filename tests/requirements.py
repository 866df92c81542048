"""The requirement manifest: every behaviour with its source, and where the seeds' boxes went.

``test_requirements.py`` enforces it both ways: every requirement has a test, every marker on a test
is a requirement, and every box and every failure of the field is mapped, to requirements that are
proven here or to the issue that will prove them.
"""

from typing import Final, NamedTuple

from tests.requirement_lines import PARTS
from tests.requirement_lines_agents import AGENT_PARTS
from tests.requirement_lines_observability import OBSERVABILITY_PARTS
from tests.requirement_lines_runtimes import RUNTIME_PARTS


class Requirement(NamedTuple):
    source: str
    sentence: str


REQUIREMENTS: Final[dict[str, Requirement]] = {
    name: Requirement(*line)
    for part in (*PARTS, *AGENT_PARTS, *OBSERVABILITY_PARTS, *RUNTIME_PARTS)
    for name, line in part.items()
}


class Later(NamedTuple):
    """Belongs to an issue that is not built yet."""

    area: str


Covered = tuple[str, ...]

BOX_COUNTS: Final = {"2.7": 20, "3.5": 6, "4.5": 9, "5.4": 8, "6.5": 8, "7.3": 6, "8": 6}
"""Acceptance boxes of seed 000, by section; 63 in all."""

BOXES: Final[dict[str, Covered | Later]] = {
    "2.7.1": (
        "seed000:2.7.1",
        "contract:good:accepted",
        "tools:spawn:receipt",
        "tools:schemas-match-decoders",
    ),
    "2.7.2": ("seed000:2.7.2",),
    "2.7.3": ("seed000:2.7.3",),
    "2.7.4": ("seed000:2.7.4", "e2e:kill:verifying"),
    "2.7.5": ("seed000:2.7.5",),
    "2.7.6": (
        *("verification:artifact:exists", "verification:artifact:min-bytes"),
        *("verification:artifact:json", "verification:artifact:min-items"),
        "verification:artifact:required-keys",
    ),
    "2.7.7": ("verification:timeout",),
    "2.7.8": ("seed000:2.7.8", "verification:artifact:all-faults"),
    "2.7.9": ("seed000:2.7.9",),
    "2.7.10": ("seed000:2.7.10", "prompt:retry"),
    "2.7.11": ("seed000:2.7.11",),
    "2.7.12": (
        "seed000:2.7.12",
        "tools:tree",
    ),
    "2.7.13": ("seed000:2.7.13", "journal:fold-is-the-run"),
    "2.7.14": (
        *("verification:artifact:exists", "verification:artifact:min-bytes"),
        *("verification:artifact:json", "verification:artifact:min-items"),
        *("verification:artifact:required-keys", "verification:report", "verification:command"),
        *("verification:artifact:sha256", "verification:artifact:schema"),
    ),
    "2.7.15": ("seed000:2.7.15", "e2e:contract:passes"),
    "2.7.16": ("seed000:2.7.16", "e2e:contract:fails"),
    "2.7.17": ("seed000:2.7.17", "e2e:contract:timeout"),
    "2.7.18": ("seed000:2.7.18", "e2e:kill:verifying"),
    "2.7.19": ("seed000:2.7.19", "e2e:contract:retry-once-only"),
    "2.7.20": ("seed000:2.7.20",),
    "3.5.1": ("config:capability-card",),
    "3.5.2": (
        "config:capability-card",
        "doctor:cards",
        "e2e:performance:doctor",
    ),
    "3.5.3": (
        "suggest:ranking",
        "suggest:cost",
        "tools:agents",
        "suggest:record",
        "e2e:performance:liar",
        "http:agents",
    ),
    "3.5.4": (
        "mcp:fleet",
        "tools:agents",
        "fleet:row",
        "prompt:fleet",
    ),
    "3.5.5": (
        "config:capability-card",
        "tools:agents",
        "doctor:cards",
        "fleet:row",
        "e2e:performance:doctor",
    ),
    "3.5.6": (
        "suggest:ranking",
        "suggest:cost",
        "suggest:record",
        "suggest:load",
    ),
    "4.5.1": (
        "tools:report-completion",
        "tools:worker:schemas",
    ),
    "4.5.2": (
        "reconcile:last-tool-call",
        "seed000:4.5.2",
        "mailbox:tool-used",
        "tools:report-completion:last-act",
    ),
    "4.5.3": (
        "seed000:4.5.3",
        "report-text:last-complete-block",
        "report-text:code-is-skipped",
    ),
    "4.5.4": (
        "mailbox:report",
        "seed000:4.5.4",
        "report-text:reconciled",
    ),
    "4.5.5": (
        "seed000:4.5.5",
        "tools:tree",
    ),
    "4.5.6": (
        "prompt:system",
        "prompt:report-form",
    ),
    "4.5.7": (
        "verification:report",
        "seed000:4.5.7",
        "report-text:verified",
    ),
    "4.5.8": (
        "tools:schemas-flat",
        "tools:worker:schemas",
    ),
    "4.5.9": (
        "seed000:4.5.9",
        "report-text:wrong-value",
        "report-text:tool-beats-text",
    ),
    "5.4.1": (
        "tools:report-progress",
        "tools:worker:schemas",
    ),
    "5.4.2": (
        "mailbox:progress-rate",
        "seed000:5.4.2",
        "progress:rate-limited",
        "tools:report-progress",
    ),
    "5.4.3": (
        "seed000:5.4.3",
        "progress:log",
    ),
    "5.4.4": (
        "mailbox:progress-rate",
        "seed000:5.4.4",
        "progress:log",
    ),
    "5.4.5": (
        "seed000:5.4.5",
        "progress:shown",
        "tools:list",
        "tools:tree",
    ),
    "5.4.6": (
        "prompt:system",
        "prompt:only-what-is-asked",
    ),
    "5.4.7": (
        "seed000:5.4.7",
        "progress:forgotten",
    ),
    "5.4.8": (
        "progress:rate-limited",
        "progress:log",
        "progress:shown",
    ),
    "6.5.1": ("tools:effective",),
    "6.5.2": (
        "tools:applied",
        "tools:fixed-at-spawn",
    ),
    "6.5.3": ("tools:applied",),
    "6.5.4": (
        "tools:never-wider",
        "seed000:6.5.4",
    ),
    "6.5.5": ("tools:effective", "tools:never-wider"),
    "6.5.6": (
        "seed000:6.5.6",
        "tools:applied",
    ),
    "6.5.7": ("claude-worker:e2e:denied-shell", "codex:scope", "llm:scope"),
    "6.5.8": (
        "seed000:6.5.8",
        "tools:fixed-at-spawn",
    ),
    "7.3.1": (
        "performance:written",
        "performance:once",
        "performance:crash",
        "e2e:performance:kill",
    ),
    "7.3.2": (
        "performance:rotation",
        "performance:written",
    ),
    "7.3.3": (
        "performance:stats",
        "python:agents",
    ),
    "7.3.4": (
        "announcement:usage-unknown",
        "performance:unknown",
    ),
    "7.3.5": ("performance:rotation",),
    "7.3.6": (
        "performance:record",
        "performance:outcome",
        "performance:stats",
        "performance:rotation",
    ),
    "8.1": ("seed000:8.1",),
    "8.2": ("seed000:8.2",),
    "8.3": ("seed000:8.3",),
    "8.4": (
        "seed000:8.4",
        "tools:fixed-at-spawn",
    ),
    "8.5": ("tools:schemas-flat",),
    "8.6": ("seed000:8.6",),
}
"""Seed 000: section and number of each ``- [ ]`` box, and what proves it."""

FIELD: Final[dict[str, Covered | Later]] = {
    "claude-code #82104": ("field:children-billed-on", "runtimes:stop-ends-everything"),
    "claude-agent-sdk-python #882": ("field:early-notification",),
    "mecatl #422": (
        "field:budget-stop-looks-like-success",
        "e2e:budget-stops-a-worker",
    ),
    "pi-subagents #849": ("contract:bad:refused",),
    "dev-loops #1448": ("field:out-of-scope-edits",),
    "AI-Employee #695": (
        *("runtimes:one-worker", "runtimes:pid-reuse-refused", "runtimes:dead-shim"),
    ),
    "multica #1326": ("field:silently-broken-agents", "runtimes:survives-daemon"),
    "omnigent #3274": ("field:dead-parents-inbox",),
    "omnigent #5614": (
        "field:empty-wake-turn",
        "field:omnigent-5614",
    ),
    "agentwire #872": (
        "field:parked-delivery-expired",
        "field:agentwire-872",
    ),
    "OpenClaw #44925": ("field:gave-up-and-dropped",),
    "claude-code #87675": (
        "field:launched-more-than-notified",
        "field:claude-code-87675",
        "e2e:fifty:waiting",
        "simulator:burst",
    ),
    "prime-agent #1192": (
        "field:stale-pool-read",
        "budget:never-exceeded",
    ),
    "Codewhale #6277": (
        "field:ate-the-report-turn",
        "budget:report-reserve",
    ),
    "gsd-2 #5668": ("field:retries-cost-six-times",),
    "bernstein #2798": ("field:stop-and-resume-lost-tasks",),
    "sculptor PR #141": ("field:answer-dropped-as-stale",),
    "OpenSwarm PR #434": (
        "field:answers-took-hours",
        "field:openswarm-434",
    ),
    "temporalio/sdk-python #1890": (
        "field:temporalio-sdk-python-1890",
        "why:long-history",
    ),
    "claude-code #74599": Later("resumable plans: a cache by content"),
    "GENesis-AGI PR #1391": (
        "claude-worker:scope:agents-by-both-names",
        "llm:scope:kinds",
        "probe:scope:broken",
    ),
    "spool #121": (
        "claude-worker:e2e:denied-shell",
        "probe:scope:proven",
        "probe:claude-code",
    ),
    "paperclip PR #9766": ("field:paperclip-9766",),
    "result never reaches the parent": ("field:launched-more-than-notified",),
    "parent parked and never woken": ("field:parent-never-woken",),
    "delivered twice or in a loop": ("field:delivered-twice",),
    "zombies": ("field:zombies", "runtimes:no-zombies"),
    "the status is a lie": ("reconcile:rules", "reconcile:report-only-lowers"),
    "wrong or truncated result": ("announcement:cut-on-display", "dependencies:result-cut"),
    "lock files and whole-file rewrites": ("field:spawn-burst",),
    "cannot stop": ("field:kill-marked-the-record-only", "runtimes:stop-ends-everything"),
    "timeouts missing or ignored": ("field:timeouts-ignored",),
    "model override ignored": ("field:model-override-ignored",),
    "wrong destination, internals leaked": ("field:wrong-destination-and-leaks",),
    "context bloat, cost blindness": (
        "field:cost-blindness",
        "budget:rolled-up",
        "digest:bounded",
        "digest:cost",
        "log:answer",
        "status:fields",
    ),
    "silence": (
        "log:survives-kill",
        "cli:log:follow",
        "attention:concerns",
        "status:fields",
        "alerts:stuck-once",
        "alerts:allowance",
    ),
    "gateway saturates": (
        "runtimes:idle-costs-nothing",
        "runtimes:flood-is-coalesced",
        "e2e:transcript:million-lines",
    ),
    "concurrency surprises": ("field:cap-exceeded", "field:deadlock-at-one"),
    "restart repeats work": ("field:restart-repeats-work",),
    "permissions both ways": ("tools:never-wider", "tools:denied-for-descendants"),
    "data lost on cleanup": ("field:data-lost-on-cleanup",),
    "provider limits": (
        "field:provider-limits",
        "claude-worker:e2e:provider-limit",
        "llm:limits:shared",
        "llm:limits:daemon",
    ),
}
"""Every row of the failures seen in the field, and what of ours would have caught it."""

SEED_002_ROWS: Final = (
    *("seed002:chain-completed", "seed002:chain-running", "seed002:chain-not-found"),
    *("seed002:retry-count-0", "seed002:retry-count-3", "seed002:backoff-fixed"),
    *("seed002:backoff-linear", "seed002:backoff-exponential", "seed002:retry-on"),
    "seed002:retry-max-time",
)
"""The ten rows of seed 002 "Test Data"."""

SEED_004_ACCEPTANCE: Final = (
    *("seed004:traceable", "seed004:typed-outcomes", "seed004:dispatch-order"),
    *("seed004:restart-resumes", "seed004:bubbling"),
)
"""The five lines of seed 004 "Acceptance criteria for V2"."""

LATER: Final[dict[str, Later]] = {
    name: where for name, where in {**BOXES, **FIELD}.items() if isinstance(where, Later)
}
"""What nothing proves yet; it may only get shorter."""
