# ruff: noqa: E501 - one line per requirement, so that each can be found, moved and counted
"""What seeing and judging promise: id → (source, sentence); see ``requirement_lines``."""

from typing import Final

from tests.requirement_lines import Lines

BREAKER: Final[Lines] = {
    "budgets:nothing-taken-back": (
        "2-lifecycle §9",
        "Totals that shrink, also within one look at the output, take nothing back of what was used.",
    ),
    "redact:before-cutting": (
        "4-observability §1",
        "An end that is kept of a program's output is redacted before it is cut, and shows no half of a secret.",
    ),
}

BUDGETS: Final[Lines] = {
    "budget:alerts": (
        "4-observability §4; seed 003 §1",
        "50, 80 and 100 % of a budget, or 1, 5, 10 and 25 USD without one, are told once each, as in the seed.",
    ),
    "budget:honest-receipt": (
        "2-lifecycle §9",
        "A receipt says which limit cannot hold on the run's runtime.",
    ),
    "budget:never-exceeded": (
        "2-lifecycle §9",
        "Whatever is spawned, used and restarted, no budget is exceeded by more than live calls can spend.",
    ),
    "budget:never-started": (
        "2-lifecycle §9",
        "A run that a budget kept from starting is an error with reason budget: nothing exists.",
    ),
    "budget:report-reserve": (
        "2-lifecycle §9",
        "A tenth of a budget is for its holder's report alone: at 90 % only what is below it ends.",
    ),
    "budget:reserved-at-spawn": (
        "2-lifecycle §9",
        "A child's budget is reserved in the step that stores it, with the nearest run that limits the same, and what it did not use is given back.",
    ),
    "budget:retry-needs-budget": (
        "2-lifecycle §4, §9",
        "No retry, verification retry or next turn begins once a budget is used up.",
    ),
    "budget:rolled-up": (
        "2-lifecycle §9",
        "What a run and everything below it used is summed up the tree, budget or not.",
    ),
    "budget:shown": (
        "4-observability §3, §5",
        "Status, details, rows and tree show usage, the subtree's usage, and the budget with what is left.",
    ),
    "budget:stop-at-100": (
        "2-lifecycle §9",
        "At the limit the attempt is stopped (grace, then kill): partial, reason budget, with what exists so far.",
    ),
    "budget:stop-below": (
        "2-lifecycle §9",
        "A used-up budget stops everything below it, in whatever phase; what is verified or announced goes on.",
    ),
    "budget:told-in-totals": (
        "2-lifecycle §9, §12 item 2",
        "A run tells its requester totals, in the commit that changed them; told twice they change nothing.",
    ),
    "budget:told-to-worker": (
        "2-lifecycle §9; 3-tools",
        "A worker without a budget of its own is told what was left above it.",
    ),
    "budget:totals-only-grow": (
        "2-lifecycle §5, §9",
        "An attempt's usage only grows: an older total that comes late takes nothing back.",
    ),
    "budget:usage-unknown": (
        "2-lifecycle §9; 4-observability §3",
        "Usage that nobody reported stays unknown in every sum, never 0.",
    ),
    "budget:wall-clock": (
        "2-lifecycle §9",
        "maxSeconds runs from the first attempt's start through waits, retries and restarts.",
    ),
    "e2e:budget-of-three-levels": (
        "2-lifecycle §9; issue 4",
        "Fifty racing real workers on three levels, over two kills of the daemon, stay within the cap, and the lead reports.",
    ),
    "e2e:budget-stops-a-worker": (
        "2-lifecycle §9",
        "A worker that ignores its stop is killed, and what it wrote is a partial result.",
    ),
    "field:ate-the-report-turn": (
        "Codewhale #6277",
        "When its descendants used up what they may, the parent still gets its report turn.",
    ),
    "field:cost-blindness": (
        "context bloat, cost blindness (≥13)",
        "A run's usage and announcement count all runs below it, also those that ended.",
    ),
    "field:retries-cost-six-times": ("gsd-2 #5668", "A retry needs budget, not only a count."),
    "field:stale-pool-read": (
        "prime-agent #1192",
        "Fifty racing children get no more than there is.",
    ),
    "spawn:guardrail-budget": (
        "2-lifecycle §2 item 9",
        "A spawn that the budgets above have no room for is refused last, by guardrail budget: whose, what is left of what, the way out.",
    ),
}

DETECTORS: Final[Lines] = {
    "detectors:activity": (
        "4-observability §3 (lastActivity)",
        "What a worker is at is said in a few words, by the tools of the known programs.",
    ),
    "detectors:again": (
        "4-observability §4 (a restart repeats nothing)",
        "Looked at again from an older state, the same is told under the same keys, and what time says is said once.",
    ),
    "detectors:any-cut": (
        "4-observability §4 (restart-safe numbering)",
        "However a stream is cut into batches, the same alerts come under the same keys.",
    ),
    "detectors:api-error": (
        "4-observability §4 (api_error); seed 003 §1",
        "An API error is told with its message and retry count, and the same one again only after something succeeded.",
    ),
    "detectors:builds": (
        "4-observability §4 (build_result); seed 003 §1",
        "A build's result says how many errors and where; passing again right after passing is not told.",
    ),
    "detectors:cheap": (
        'issue 4 "a worker printing 1,000,000 lines"',
        "Plain text costs the detectors next to nothing per line.",
    ),
    "detectors:commands": (
        "4-observability §4 (build_result)",
        "Command lines are read as a shell reads them: builds are found behind wrappers and in quotes, names of builds in other commands are none.",
    ),
    "detectors:commits": (
        "4-observability §4 (git_commit)",
        "Commits are known by what git prints or how it ended, root, detached, quiet and amended ones too; those of one batch are one line.",
    ),
    "detectors:context": (
        "4-observability §4 (context_pressure)",
        "Thresholds of the model's window are told once each, again after a compaction, and never for an unknown window.",
    ),
    "detectors:exit-codes": (
        '4-observability §4 ("pass/fail from its exit code first")',
        "An exit code is read back onto the commands of a line it speaks for, and onto no others.",
    ),
    "detectors:failure-loop": (
        "4-observability §4 (failure_loop)",
        "Tools that fail in a row are told once per loop; a success resets, an answer of grep is neither.",
    ),
    "detectors:form": (
        '4-observability §4 ("Short, one line per cause")',
        "Every alert is one line of at most 160 characters, at most 80 of them the worker's, without secrets.",
    ),
    "detectors:linear": (
        "4-observability §2 (the daemon never freezes)",
        "No output and no command line takes long to judge.",
    ),
    "detectors:milestones": (
        "4-observability §4 (task_milestone)",
        "Items of a worker's plan are told when they begin and when they are done; sorting, rewording or rewriting a plan is no news.",
    ),
    "detectors:never-raises": (
        "4-observability §4 (detectors are pure functions)",
        "No text of a worker makes a detector fail.",
    ),
    "detectors:recorded": (
        "4-observability §4 (table of cases)",
        "Some 290 recorded outputs of real tools are judged with their exit code and without: none wrong, the few not told are pinned.",
    ),
    "detectors:small": (
        "4-observability §4",
        "What is kept between batches stays small and survives being written down.",
    ),
    "detectors:spawns": (
        "4-observability §4 (subagent_spawn)",
        "Sub-agents that a worker starts side by side are one line with their number and team.",
    ),
    "detectors:stuck": (
        "4-observability §4 (stuck)",
        "Silence is told once with the last activity, after a longer time while a tool runs, and anew after something was said.",
    ),
    "detectors:traps": (
        "4-observability §4 (known traps)",
        "The traps of the specification are judged right.",
    ),
    "docs:alerts": (
        'issue 4 "listed in the docs with misses if any"',
        "The alerts page names every kind and lists every recorded case with its misses, drawn from the data.",
    ),
}

FEED: Final[Lines] = {
    "cli:events": (
        "4-observability §9",
        "The command events prints what happened from any number on, and follows over the end of a daemon without a gap or a double.",
    ),
    "e2e:supervisor:replay": (
        "4-observability §8",
        "After kill -9 of the daemon each supervisor gets exactly what it missed.",
    ),
    "e2e:supervisor:seed-client": (
        "seed 003",
        "A supervisor written from the seed alone sees and directs its agents, two at once.",
    ),
    "events:client-gone": ("4-observability §9", "Nobody waits on for a client that went away."),
    "events:filters": (
        "4-observability §9",
        "Filters by run, tree, types and level leave only what was asked for, and wrong ones are refused by name.",
    ),
    "events:heartbeat": (
        "4-observability §9",
        "A quiet stream is kept alive every 15 seconds and says where it is.",
    ),
    "events:pages": (
        "4-observability §9",
        "The same stream comes as pages of JSON by long poll, each saying where to go on.",
    ),
    "events:reset": (
        "4-observability §9",
        "A number of another database is answered with a reset.",
    ),
    "events:sse": (
        "4-observability §9",
        "The event stream tells everything as it happens, and a browser that comes back misses nothing.",
    ),
    "events:stop": (
        "4-observability §9",
        "Streams end when the daemon stops and do not hold it up.",
    ),
    "events:visible": ('3-tools "Who is calling"', "An agent hears of its own tree alone."),
    "feed:cancelled": ("4-observability §8", "What a cancelled wait would have told comes again."),
    "feed:completion": (
        "seed 003 §1",
        "The event that gave the outcome is the completion, told once, also to whoever reads before the commit is published.",
    ),
    "feed:future": (
        "4-observability §8",
        "A number of another database is noticed, and following begins at the newest event.",
    ),
    "feed:no-secrets": (
        "4-observability §1",
        "Secrets in what workers say are not pushed to followers.",
    ),
    "feed:order": (
        "4-observability §8",
        "A follower hears of every event once, in the order of the commits.",
    ),
    "feed:pruned": (
        "4-observability §8",
        "The events of a pruned run are gone and all others keep their numbers.",
    ),
    "feed:replay": (
        "4-observability §8",
        "Replay from a number gives the same events again, over restarts and over pages.",
    ),
    "feed:run-event": (
        "4-observability §9",
        "Every journal entry has one generic document, without any text of task or worker.",
    ),
    "feed:scope": (
        '4-observability §8, 3-tools "Who is calling"',
        "Each scope (run, tree, session, label) shows its runs and no others.",
    ),
    "feed:seed-fields": (
        "seed 003 §1",
        "Each structured event has exactly the fields of the seed, and its number, run, label and time besides.",
    ),
    "feed:wakes": (
        "4-observability §8",
        "A follower that waits is woken by a commit, and told when nothing came in time.",
    ),
    "python:events": (
        "4-observability §9",
        "A Python program follows its runs over the death of the daemon.",
    ),
    "store:feed:failed-commit": (
        "4-observability §8",
        "A failed commit uses up no number and leaves no gap.",
    ),
    "store:feed:migrated": (
        "4-observability §8",
        "A database of the first version gets its events numbered in the order of their commits.",
    ),
    "store:feed:never-backwards": (
        "4-observability §8",
        "A number is never given twice, also after everything was pruned or the file was vacuumed.",
    ),
    "store:feed:order": (
        "4-observability §8",
        "Events of all runs have one order by number and are paged by it.",
    ),
    "supervisor:bounded": (
        "4-observability §8",
        "A supervisor that sends lines without end or does not read grows no memory, holds up nobody and misses nothing.",
    ),
    "supervisor:create": (
        "4-observability §8",
        "An agent is created, watched, and its log and status read; what cannot be created is refused and nothing is stored.",
    ),
    "supervisor:end": (
        "4-observability §8",
        "Killing an agent ends its processes, destroying it puts it away.",
    ),
    "supervisor:lives-on": (
        "4-observability §8",
        "Bad JSON, an unknown action, wrong parameters or a line that is too long get an error answer, and the connection lives on.",
    ),
    "supervisor:many": (
        "4-observability §8",
        "Several supervisors at once, up to a limit that is told.",
    ),
    "supervisor:no-worker": (
        '3-tools "Who is calling"',
        "A worker cannot become a supervisor, and the try is on record.",
    ),
    "supervisor:register": (
        "4-observability §8",
        "A supervisor registers as one session, which owns what it creates; before that only ping is answered.",
    ),
    "supervisor:replay": (
        "4-observability §8",
        "Replay gives what was missed, then what happens, each once and in order.",
    ),
    "supervisor:same-user": ("4-observability §8", "A supervisor of another user is cut off."),
    "supervisor:socket": (
        "4-observability §8",
        "The supervisor socket is as private as the daemon's, replaces a stale one, and goes with the daemon.",
    ),
    "supervisor:stop": (
        "4-observability §8",
        "The daemon stops at once with supervisors connected.",
    ),
    "supervisor:subscribe": (
        "4-observability §8",
        "Each supervisor hears what it subscribed to, by name, session or everything.",
    ),
    "supervisor:talk": (
        "4-observability §8",
        "Messages go to live attempts, and the error names the missing ability or the end of the agent.",
    ),
}

LOGS: Final[Lines] = {
    "attention:concerns": (
        "5-surfaces §2 attention; 4-observability §4",
        "attention lists silence, failing tools, refusals and used-up budgets of runs at work while they stand, and no longer.",
    ),
    "cli:log": (
        "5-surfaces §2; seed 003 §2",
        "log shows time, sign and text; filters and windows as asked.",
    ),
    "cli:log:follow": (
        "5-surfaces §2",
        "log --follow goes on to the run's end, also over a killed daemon, and no line comes twice.",
    ),
    "cli:log:refusals": ("5-surfaces §7", "log names what is wrong and ends with 2 or 3."),
    "cli:status": (
        "5-surfaces §2; 4-observability §3",
        "status shows what counts on two lines, without a made-up cost.",
    ),
    "digest:bounded": (
        "4-observability §2 summary",
        "A digest has at most 40 short lines, and a worker can write none of its own into it.",
    ),
    "digest:cost": (
        "4-observability §2 summary, §3",
        "Unknown cost is told as tokens or as unknown, never as $0.00.",
    ),
    "digest:now": (
        "4-observability §2 summary",
        "The digest tells progress, open questions and the last activity with its age.",
    ),
    "digest:tool-lines": (
        "seed 003 §2 (line types)",
        "A tool's line is read back as it was written: name, failure, exit code, what it was asked.",
    ),
    "digest:what-was-done": (
        "4-observability §2 summary",
        "The digest tells tools with counts, files touched, commands with exit codes, errors and the report.",
    ),
    "e2e:log": ("4-observability §2", "The log of a real worker is read while it runs."),
    "http:log:pages": (
        "5-surfaces §4 (/log)",
        "The log is filtered first, then windowed; the newest lines come without an offset.",
    ),
    "log:answer": (
        "4-observability §2; seed 003 §2",
        "The answer has exactly the documented fields, and lines of all sources in one order.",
    ),
    "log:attempt": ("4-observability §2 attempt", "The lines of one attempt can be read alone."),
    "log:cursor": ("4-observability §2 (nextSeq)", "Pages read by their cursor make up the whole."),
    "log:long-poll": (
        "4-observability §2 follow",
        "A reader behind the end is held until there is a line, the run ended or its time is up.",
    ),
    "log:own": ('3-tools "Who is calling"', "A worker reads only the logs of its own tree."),
    "log:refusals": (
        "5-surfaces §7; 4-observability §2",
        "Wrong numbers, types, times, patterns and parameters that exclude each other are refused by name.",
    ),
    "log:since": (
        "4-observability §2",
        "since takes durations and ISO times, with and without a zone.",
    ),
    "log:summary": (
        "4-observability §2 summary",
        "A summary is made without a model and spawns nothing.",
    ),
    "log:summary:agent": (
        "4-observability §2 summary",
        "A configured agent writes the summary once per state of the log; where it fails the digest stands and says why.",
    ),
    "log:survives-kill": (
        'issue 4 "Must show"; 4-observability §1',
        "offset, since and cursor give the same lines before and after kill -9, none lost, none doubled.",
    ),
    "log:tool-use": ("seed 003 §2", "A search for tool_use alone means the calls of tools."),
    "log:window": (
        "4-observability §2",
        "Without an offset the newest lines come; behind a cursor the oldest.",
    ),
    "progress:stream": (
        "3-tools report_progress; 4-observability §5",
        "Progress on a worker's stdout is kept once in 30 s up to 100 lines, and is always the latest.",
    ),
    "python:log": (
        "5-surfaces §6; 4-observability §2",
        "A log is read, followed and summed up from Python.",
    ),
    "seed003:2": ("seed 003 §2", "Each command line form of the seed gives what it says."),
    "status:fields": (
        "4-observability §3; seed 003 §3",
        "Status has every field; what nobody reported is null.",
    ),
    "tools:log": (
        "3-tools subagents; 4-observability §2",
        "The log brings the newest lines or what is asked for, bounded and with secrets removed.",
    ),
    "tools:status": (
        "3-tools subagents; 4-observability §3",
        "The tool's status says what a run is at in two lines and has every field.",
    ),
    "watch:ends": (
        "5-surfaces §2",
        "watch ends with 0 when all it shows are over, also over a killed daemon, with 130 at Ctrl-C.",
    ),
    "watch:once": (
        "5-surfaces §2",
        "watch --once is a table, with --json a document; mistakes are named.",
    ),
    "watch:order": (
        "notes of 5-surfaces §2; 4-observability §5",
        "Who needs somebody stands first, then what failed; rows of a group do not move.",
    ),
    "watch:rows": (
        "4-observability §3, §5",
        "A row of watch shows name, agent, state, time, tokens, cost, children, last sign of life and what it does.",
    ),
    "watch:terminal": ("5-surfaces §2", "On a terminal the table is never higher than the screen."),
}

OPERATORS: Final[Lines] = {
    "daemon:log:no-secrets": (
        "4-observability §1 (a planted secret never appears in files)",
        "A planted secret is in no line of the daemon's log.",
    ),
    "daemon:log:structured": (
        "4-observability §9 (structured logs)",
        "The daemon's log is lines of JSON: time, level, logger, message, run, exception.",
    ),
    "daemon:log:terminal": (
        "5-surfaces §2 (serve)",
        "On a terminal the same lines are sentences; elsewhere nothing is printed.",
    ),
    "metrics:all": (
        "4-observability §9 (/metrics)",
        "Every metric is there from the first scrape, parseable, with help and type.",
    ),
    "metrics:bounded": (
        "4-observability §9 (/metrics)",
        "Labels are bounded; histograms count into the first bucket that fits.",
    ),
    "metrics:counts": ("4-observability §9 (/metrics)", "What happened is what is counted."),
    "metrics:loop-lag": (
        '8-field-failures "gateway saturates"',
        "A loop that was held up shows in the metrics.",
    ),
    "metrics:operator": ('3-tools "Who is calling"', "Metrics are for the operator."),
    "openapi:bodies": (
        "5-surfaces §4 (/openapi.json)",
        "A body fits its schema when the daemon takes it.",
    ),
    "openapi:every-route": (
        "5-surfaces §4 (/openapi.json)",
        "Every route is described, and no other.",
    ),
    "openapi:fuzz": (
        "5-surfaces §7; notes (schemathesis)",
        "Hundreds of generated calls, fitting and not, get only answers that are described and never a 500.",
    ),
    "openapi:headers": ("5-surfaces §4 (/openapi.json)", "Headers and the token are described."),
    "openapi:parameters": (
        "5-surfaces §4 (/openapi.json)",
        "The described query parameters are those the handlers know, both ways.",
    ),
    "openapi:problems": (
        "5-surfaces §4 (problem documents)",
        "Every error code is in the description, and real errors fit it.",
    ),
    "openapi:valid": (
        "5-surfaces §4 (/openapi.json)",
        "The document is valid OpenAPI 3.1 and every schema in it compiles.",
    ),
    "telemetry:attempt-span": (
        "4-observability §9",
        "An attempt is one span that says who worked for whom, at what cost, and whether the daemon restarted meanwhile.",
    ),
    "telemetry:bounded": (
        "docs/decisions/0022",
        "Many spans go in several requests of bounded size.",
    ),
    "telemetry:content-off": (
        "4-observability §9 (content off by default)",
        "No text of anybody is in a span unless content is asked for; then it is redacted and cut.",
    ),
    "telemetry:doctor": (
        "4-observability §9 (doctor)",
        "doctor says whether anything is sent, where to, how it goes, and where the log is.",
    ),
    "telemetry:e2e": (
        'issue 4 "Must show" (spans of a three-level tree)',
        "Spans of three levels of real workers arrive with the right parents although the daemon was killed in the middle.",
    ),
    "telemetry:ended-only": (
        "docs/decisions/0022",
        "A run is sent when it is over, its delivery included.",
    ),
    "telemetry:extra": (
        "issue 4 (extra otel)",
        "An endpoint without the extra says what to install; without an endpoint nothing of it is loaded.",
    ),
    "telemetry:from-now-on": (
        "docs/decisions/0022",
        "The first export begins with what ends from then on.",
    ),
    "telemetry:no-loss": (
        "4-observability §9 (a restart loses no span)",
        "What ended while nobody exported, or in a daemon that was killed, is sent by the next one.",
    ),
    "telemetry:off": (
        "4-observability §9",
        "Without an endpoint nothing is sent, then or later, and workers are told of no trace.",
    ),
    "telemetry:otlp": (
        "4-observability §9",
        "What ends arrives at an OTLP receiver over HTTP with names, times, kind, resource and headers.",
    ),
    "telemetry:outlived": (
        'notes: OpenTelemetry ("span link, not parent")',
        "A child that outlived its parent is linked to it in the same trace.",
    ),
    "telemetry:receiver-down": (
        "docs/decisions/0022",
        "A receiver that is down loses nothing, delays no stop and is spoken of once; one that refuses for good holds up nothing.",
    ),
    "telemetry:retry-linked": (
        'notes: OpenTelemetry ("a retry is a new span linked to the first")',
        "A retry is a span of its own, linked to the first attempt.",
    ),
    "telemetry:same-ids": (
        "4-observability §9 (a restart loses no span)",
        "The same run told again has the same ids, and a worker knows its span before it starts.",
    ),
    "telemetry:tool-spans": (
        "4-observability §9 (execute_tool)",
        "Each tool is a span under its attempt; very many are bounded and counted.",
    ),
    "telemetry:traceparent": (
        "notes: OpenTelemetry (TRACEPARENT)",
        "A worker carries the trace of its tree, so that its own telemetry joins it.",
    ),
    "telemetry:tree": (
        '4-observability §9; issue 4 "with the right parents"',
        "A tree of runs is one trace; a child lies under the attempt that spawned it.",
    ),
    "telemetry:untried": (
        "4-observability §9",
        "A run that ended before any attempt is a span too.",
    ),
    "telemetry:user-file-only": (
        "4-observability §9; docs/decisions/0012",
        "A project's file cannot turn on or redirect what is sent.",
    ),
    "telemetry:verification-span": (
        "4-observability §9",
        "The check of a contract is a span under the attempt that it judged.",
    ),
    "why:long-history": (
        '8-field-failures "history cap"',
        "A run of ten thousand events says why within a second, in constant memory, without holding up other calls.",
    ),
}

PERF: Final[Lines] = {
    "doctor:cards": (
        "4-observability §7; seed 000 §3.2",
        "What misleads about a card is a warning with its mend: double tags, a card nobody can choose, a latency or price the records contradict.",
    ),
    "e2e:performance:doctor": (
        "4-observability §7; seed 000 §3.2",
        "Doctor reports a wrong or odd card with the way out, and takes agents without one.",
    ),
    "e2e:performance:kill": (
        "4-observability §6",
        "Over six kills of the daemon every attempt has its record exactly once.",
    ),
    "e2e:performance:liar": (
        "4-observability §6, §7",
        "After sixty runs of three agents the one that claims and never delivers is suggested last, with its counts as the reason.",
    ),
    "fleet:row": (
        '3-tools "The fleet table"; seed 000 §3.4',
        "The fleet table has one bounded line per agent one may name, with its card where there is one.",
    ),
    "http:agents": (
        "5-surfaces §4; 4-observability §6, §7",
        "The calls below /v1/agents show cards, limits, statistics and advice, each caller its own agents, and refuse wrong parameters.",
    ),
    "performance:crash": (
        "4-observability §6",
        "A crash after any commit, kill -9 at any moment and a lost end of the file leave every ended attempt with exactly one record.",
    ),
    "performance:disk-full": (
        "4-observability §6",
        "Records that cannot be written hold up no run, are said once, and are made good later.",
    ),
    "performance:final": (
        "4-observability §6",
        "A record is made once its attempt can change no more, and is the same whatever happens to the run later.",
    ),
    "performance:interval": ("4-observability §6", "Rates carry n and the 95 % Wilson interval."),
    "performance:once": (
        "4-observability §6",
        "An attempt is recorded once, whoever brings its record again and however a write failed.",
    ),
    "performance:outcome": (
        "4-observability §6",
        "An attempt comes to what its exit and its contract say; a worker's own claim is kept and never counts.",
    ),
    "performance:record": (
        "4-observability §6; seed 000 §7.1, §9",
        "A performance record has the documented fields, all of them always, and no text of task, label, result or report.",
    ),
    "performance:repeated": (
        "4-observability §6; seed 000 §7.1",
        "A repeated run names the attempt it repeats, and the run whose broken contract was escalated.",
    ),
    "performance:rotation": (
        "4-observability §6; seed 000 §7.2",
        "Each UTC day has a file of its own for its owner only, and the sweep drops what is older than thirty days.",
    ),
    "performance:stats": (
        "4-observability §6; seed 000 §7.3",
        "Statistics count by agent, tag or model: success only where verified, cancelled attempts apart, sums with how many they are known of.",
    ),
    "performance:timeout": (
        "4-observability §6; seed 000 §7.1",
        "An attempt stopped at its deadline is recorded as a timeout.",
    ),
    "performance:torn-line": (
        "4-observability §6",
        "A torn last line is mended, foreign lines are left out, and all whole lines count.",
    ),
    "performance:unknown": (
        "4-observability §3, §6; seed 000 §7.3",
        "Tokens, cost, verdict and report that are unknown are null, never 0.",
    ),
    "performance:written": (
        "4-observability §6; seed 000 §7.2",
        "Every ended attempt leaves one line in the file of its UTC day, also when its run waits for a retry.",
    ),
    "prompt:fleet": (
        '3-tools "The fleet table"; seed 000 §3.4',
        "The prompt of a worker that may spawn names the agents it may use; a leaf's does not.",
    ),
    "python:agents": (
        "5-surfaces §6; 4-observability §6, §7",
        "A program asks how agents did and who fits, with the same documents as HTTP.",
    ),
    "trust:alerts": (
        "docs/decisions/0012",
        "A project's file neither silences nor floods who hears of an agent of the user's, and gives its own agents no larger allowance.",
    ),
    "trust:summarizer": (
        "docs/decisions/0012",
        "A project's file cannot choose who is started to summarize transcripts.",
    ),
}

RUNTIMES: Final[Lines] = {
    "e2e:transcript:disk-is-bounded": (
        "4-observability §1 (bounded)",
        "Two hundred megabytes of output hold little disk while the worker lives and none after, also when the daemon died in between.",
    ),
    "e2e:transcript:million-lines": (
        'issue 4 "Must show"; 4-observability §1',
        "A million lines are recorded within the bound of the log while control calls answer within 50 ms in 99 of 100 cases.",
    ),
    "e2e:transcript:once-over-kills": (
        '4-observability §1; issue 4 "Must show"',
        "Every line of both streams is recorded once and in order over six kills of the daemon in the middle of the output.",
    ),
    "output:crash-before-it-is-let-go": (
        "4-observability §1",
        "Output that a crash left behind is let go when its run is cleaned up.",
    ),
    "output:deleted-at-the-end": (
        "4-observability §1 (bounded)",
        "The output of an ended attempt is deleted; its end stays on record, and repeating or failing does no harm.",
    ),
    "output:disk-is-bounded": (
        "4-observability §1 (bounded)",
        "What was read is punched out of the output files; what is still needed stays byte for byte.",
    ),
    "output:durable-first": (
        "4-observability §1; 6-house-style §25",
        "Output is let go only when its lines, its cursor and, for all of it, the attempt's end are durable.",
    ),
    "output:gone-bytes-are-no-output": (
        "4-observability §1",
        "A reader that lost its place begins behind what is gone, and takes no hole for output.",
    ),
    "output:never-fatal": ("docs/decisions/0019", "Output that cannot be let go harms no run."),
    "output:result-outlives-its-bytes": (
        '7-runtimes "The shim"',
        "A result event and the end of the text count as the result although the bytes before are gone.",
    ),
    "runtimes:one-use-one-signal": (
        "2-lifecycle §5; 4-observability §3 (toolsUsed)",
        "The use of a tool is one signal, at its end.",
    ),
    "runtimes:plain-lines-are-cheap": (
        'issue 4 "Must show"',
        "A hundred thousand plain lines are decoded in a fraction of a second.",
    ),
    "transcript:errors-on-stderr": (
        'seed 003 "Log Line Types" (error)',
        'A line of standard error is an error by its words, and "0 errors" is none.',
    ),
    "transcript:heard-once-over-restarts": (
        '4-observability §1 ("durable")',
        "Readers killed at any place, while the files grow and are given up, together hear exactly what one reader hears.",
    ),
    "transcript:lines-are-plain-text": (
        "4-observability §1",
        "Escape sequences, NULs and overwritten progress are taken out of lines, in time linear in the text.",
    ),
    "transcript:long-lines-are-cut": (
        "4-observability §1",
        "A long line is cut behind its secrets and says by how much.",
    ),
    "transcript:said-by-plain-programs": (
        "4-observability §1",
        "Every line of both streams of a plain program is heard in order; blank ones are not.",
    ),
    "transcript:scripted-workers-speak": (
        "docs/howto/workers.md",
        "A scripted worker is heard like a plain program, and a wrong script is refused before it is played.",
    ),
    "transcript:structured-events-are-said": (
        "4-observability §1; docs/howto/workers.md",
        "A structured event says what it names; an odd field of a tool is taken for absent.",
    ),
    "transcript:tool-inputs": (
        "seed 003 §1 (TodoWrite, Task, Bash)",
        "The command, file, plan and sub-agents of a tool are known however programs name them, and all of it is bounded.",
    ),
    "transcript:tool-lines": (
        "seed 003 §2 (get_log); 4-observability §1 (tool)",
        "A tool reads as in the seed: mark, name, duration, exit code, short input, the end of the result; one that began can be seen.",
    ),
}

SPEED: Final[Lines] = {
    "recorder:reader-cancelled": (
        "4-observability §1",
        "A reader that goes away while it writes takes neither lines nor alerts along, and hangs no run.",
    ),
    "recorder:writes-later": (
        "4-observability §1",
        "What cannot be written for want of the journal is written later, and holds up no run's end.",
    ),
}

STORE: Final[Lines] = {
    "bench:logs": (
        "issue 4, must show",
        "Searching a transcript is measured against grep on the same text, with the same answers.",
    ),
    "grep:bad-pattern": (
        "4-observability §2; issue 4, must show",
        "A pattern that is none is refused with the reason and the position.",
    ),
    "grep:catastrophic": (
        "4-observability §2; issue 4, must show",
        "A catastrophic pattern is stopped, or refused before a line is read, and the message says what to do.",
    ),
    "grep:deadline": ("issue 4", "A search that takes too long says how far it got."),
    "grep:exact": (
        "4-observability §2",
        "What is found by words, reduced patterns and skipped slices is what the library finds line by line.",
    ),
    "grep:other-threads": (
        "4-observability §2 (the daemon never freezes)",
        "No question to the library holds the interpreter for longer than a bounded number of steps.",
    ),
    "grep:re2": (
        "notes on libraries",
        "With RE2 installed what the one engine cannot finish is answered by the other.",
    ),
    "redact:callers-words": (
        "issue 4, build 1",
        "What a caller writes is kept word for word and reaches the worker as it is; the log shows it redacted.",
    ),
    "redact:events": (
        "4-observability §1",
        "Words of workers and programs are clean in every event and in what detectors see.",
    ),
    "redact:every-door": (
        "4-observability §1 (planted secrets tested everywhere)",
        "No planted secret said at any door reaches the database, a file or an answer.",
    ),
    "redact:fast": (
        "4-observability §1",
        "Text that is passed unread holds nothing that a pattern would find.",
    ),
    "redact:identical": ("4-observability §1", "What has no secret is the same byte for byte."),
    "redact:key-by-line": (
        "4-observability §1",
        "A private key printed line by line is taken out, whatever stands before or between its lines.",
    ),
    "redact:kinds": (
        "4-observability §1",
        "A secret of each of 57 kinds is taken out, and what stands around it stays.",
    ),
    "redact:one-door": (
        "4-observability §1",
        "Secrets end where events are taken in: start failures, progress files, repeated questions.",
    ),
    "redact:own": (
        "4-observability §1",
        "Values of an agent's own variables whose name says secret are replaced wherever they stand.",
    ),
    "redact:stream": ("4-observability §1", "A stream in pieces is redacted as the whole of it."),
    "transcript:bounded": (
        "4-observability §1 (max_transcript_mb)",
        "The oldest lines go, the newest stay with their numbers, and checkpoints do not let it grow.",
    ),
    "transcript:forget": (
        "ports.TranscriptLog",
        "A forgotten transcript is gone and can be begun again.",
    ),
    "transcript:full-disk": (
        "4-observability §1",
        "A batch for which there is no room is not kept by half, and recording goes on when there is.",
    ),
    "transcript:kept": (
        "4-observability §1",
        "Lines and their checkpoint come back as they were given; numbers never go back.",
    ),
    "transcript:kill": (
        "issue 4, must show",
        "After kill -9 in the middle of writing there is neither a gap nor a double.",
    ),
    "transcript:none": (
        "ports.TranscriptLog",
        "A run without a transcript has no lines, and looking for it leaves nothing behind.",
    ),
    "transcript:private": (
        "4-observability §1; 5-surfaces §4",
        "Only its owner may read a transcript.",
    ),
    "transcript:query": (
        "4-observability §2; seed 003 §2",
        "Filters first, then the window; offsets are the same before and after a kill; the cursor misses nothing.",
    ),
    "transcript:readers": (
        "ports.TranscriptLog",
        "Whoever reads while lines are written, dropped or compacted sees whole batches without gaps.",
    ),
    "transcript:synced": (
        "ports.TranscriptLog",
        "After sync files and directories outlive a power cut.",
    ),
    "transcript:torn": (
        "4-observability §1",
        "What a crash, a power cut or another version left of a batch is cut off, and the batch comes again once.",
    ),
}

LEAD: Final[Lines] = {
    "alerts:allowance": (
        "4-observability §4 (noise policy)",
        "No hour pushes more tokens of alerts of one run than its allowance.",
    ),
    "alerts:digest": (
        "4-observability §4 (noise policy)",
        "What was held back becomes one digest line when the hour is over, and nothing but what is urgent overtakes it.",
    ),
    "alerts:e2e": (
        "4-observability §4; seed 003 §1",
        "Each alert of a real worker reads as specified and is told once, over two kills of the daemon.",
    ),
    "alerts:e2e-allowance": (
        "4-observability §4 (noise policy)",
        "A run of five hundred events pushes no more than its allowance, and all of them are in the journal.",
    ),
    "alerts:form": (
        "4-observability §4; seed 003 §1",
        "An alert is one line behind the worker's name, whatever the text in it.",
    ),
    "alerts:last-acts": (
        "4-observability §4 (git_commit)",
        "What a worker did last is told before its end, not dropped with it.",
    ),
    "alerts:numbered": (
        "4-observability §4",
        "The alerts of a run are numbered, and no number is used twice.",
    ),
    "alerts:off": (
        "4-observability §4",
        "A kind that is off is never pushed and never counted; it stays in the journal.",
    ),
    "alerts:outdated": (
        'seed 003 "Context is precious"',
        "Whoever read the end of a run is not told its old news any more.",
    ),
    "alerts:stuck-once": (
        "4-observability §4 (stuck)",
        "Silence is told once, also over a restart.",
    ),
    "alerts:to-a-run": (
        "4-observability §4 (to steer when its runtime takes them)",
        "A requester that is a run hears of alerts in its live attempt, and its inbox row counts as read.",
    ),
    "alerts:urgent": (
        "4-observability §4 (noise policy)",
        "A part of the allowance is kept for silence, errors, budgets and failure loops.",
    ),
    "alerts:wake": (
        'seed 003 "Context is precious"',
        "Only alerts that need a look are worth waking an idle session for.",
    ),
    "field:paperclip-9766": (
        '8-field-failures "9,700 failed ticks in 80 h"',
        "An effect that fails again and again is quarantined: tried every quarter of an hour, one alert, listed in attention until it works.",
    ),
    "recorder:alerts-once": (
        "4-observability §4",
        "An alert is durable before the line it comes from, and a piece that is looked at again tells nothing again.",
    ),
    "recorder:holes-are-told": (
        "4-observability §1 (dropped and counted)",
        "Lines that a full disk cost are counted in the place where they are missing.",
    ),
    "recorder:lines": (
        "4-observability §1",
        "Lines have their number, time, type and attempt; starts, messages and the end are among them.",
    ),
    "recorder:never-holds-up": (
        "docs/decisions/0019",
        "A transcript that cannot be kept holds up no run.",
    ),
    "recorder:restart": (
        "4-observability §1",
        "After a crash reading goes on behind the last line that was kept, and those before stay as they were.",
    ),
    "recorder:thinking": (
        "4-observability §1",
        "Thoughts and long lines are cut and say by how much.",
    ),
    "redact:escaped-line-ends": (
        "4-observability §1 (secrets are redacted when written)",
        "A key that stands behind an escaped line end in a piece of JSON is redacted, too.",
    ),
    "store:alerts-outdated": (
        'seed 003 "Context is precious"',
        "Unread alerts of one run are consumed with its end, those of others stay.",
    ),
    "store:prunable-alerts": (
        "2-lifecycle §11 (prune)",
        "Alerts nobody read keep no run from being pruned.",
    ),
}

OBSERVABILITY_PARTS: Final[tuple[Lines, ...]] = (
    BREAKER,
    BUDGETS,
    DETECTORS,
    FEED,
    LOGS,
    OPERATORS,
    PERF,
    RUNTIMES,
    SPEED,
    STORE,
    LEAD,
)
