"""What a person reads of the flags of ``run`` and ``spawn``.

The declaration of a parameter is short for the models' sake, who pay for each word of it. What is
derived does not stand here: that a flag can be repeated, its default, the words it takes.
"""

from typing import Final

from subagents.cli.flag_table import CHECKS
from subagents.cli.runs import contract_flags

HELP: Final = {
    "label": "A short name that can be used instead of its id.",
    "agentId": "The agent that does it. Default: the configured one, else command.",
    "model": "The model, for agents that let you choose one.",
    "thinking": "The thinking level, for agents that have one.",
    "progressReporting": "Ask the worker to report progress.",
    "tags": "A word to find it by.",
    "idempotencyKey": "Spawning again with the same key within 24 h returns the same run.",
    "path": f"A file the work must leave behind, relative to --cwd. Repeatable; the flags down to "
    f"{tuple(CHECKS)[-1]} apply to the {contract_flags.VERIFY} before them.",
    "json": "The file must be valid JSON.",
    "minItems": "Fewest items in its top-level array; implies --verify-json.",
    "requiredKeys": "Keys that each of its items must have; implies --verify-json.",
    "minBytes": "Smallest size of the file, in bytes.",
    "schema": "A JSON Schema that the file must match; implies --verify-json.",
    "sha256": "SHA-256 of the file.",
    "regex": "A regular expression (RE2) that must match in the file.",
    "junit": "The file must be JUnit XML without failures.",
    "minTests": "Fewest different tests that must have run; implies --verify-junit.",
    "newerThan": "The file must be newer than this one.",
    "minFiles": "Fewest files that must match; the --verify before it is a glob.",
    "maxFiles": "Most files that may match; the --verify before it is a glob.",
    "fresh": "Accept a file from before the run, unchanged; before any --verify, every file.",
    "verification.requireCompletionReport": "The worker must end with a completion report.",
    "verification.commands": "A shell command that must exit with 0.",
    "verification.mustChange": "Something that matches must change.",
    "verification.mustNotChange": "Nothing that matches may change.",
    "verification.onFailure": "What to do when a check fails.",
    "verification.verificationTimeoutMs": "Time limit for all checks except the judge.",
    "verification.judge.agentId": "An agent that judges the work after all other checks.",
    "verification.judge.criteria": "What the judge looks for.",
    "verification.judge.model": "The judge's model.",
    "verification.judge.runTimeoutSeconds": "Time limit of the judge.",
    "verification.judge.access": "What the judge may do.",
    "completionReport": "Ask the worker for a structured report; --require-report insists on it.",
    "retryCount": "Attempts after a failed one.",
    "retryDelay": "Delay before the first retry.",
    "retryOn": "Retry only errors that contain this text.",
    "retryMaxTime": "Start no retry later than this.",
    "dependsOn": "Start after this run (id or label) has ended.",
    "includeDependencyResult": "Put the results of those runs before the task.",
    "onDependencyFailure": "What to do when one of them fails.",
    "fallbackAgentId": "With fallback: the agent that does the task then.",
    "acceptPartialDependencies": "A partial outcome of those runs is good enough.",
    "dependencyTimeoutSeconds": "Longest wait for those runs. Default: no limit.",
    "runTimeoutSeconds": "Time limit of each attempt; 0 means none.",
    "toolsAllow": "Allow only the tools named.",
    "toolsDeny": "Deny this tool, also to everything it spawns.",
    "access": "Only read, write below --cwd, or full. Default: all that its agent may.",
    "budget.maxTokens": "Tokens for the run and everything it spawns; of `map`, for all of them.",
    "budget.maxCostUsd": "Cost of the run and everything it spawns; of `map`, of all of them.",
    "budget.maxRuns": "Most runs in its tree, itself included.",
    "budget.maxSeconds": "Time for the run, including retries and waits.",
    "cwd": "The working directory. Default: where you are.",
    "isolation": "worktree: in a git worktree of its own; sandbox: sees none of your files but "
    "those of --cwd (needs bubblewrap).",
    "network": "none: no network. Default: host, in a sandbox none.",
    "lane": "The pool of slots it takes one from.",
    "priority": "Higher starts first.",
    "mode": "session: stay open for messages; needs --thread.",
    "thread": "Bind its session to a conversation thread.",
    "cleanup": "Keep or delete its task, session and transcript at the end.",
    "expectsCompletionMessage": "Whether its end is pushed to your session before it is queued in"
    " your inbox, which has it either way. Default: yes.",
}
"""By name of the parameter, of a file's check without those before it."""
