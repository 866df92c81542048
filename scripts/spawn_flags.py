"""Write the flags of a spawn from the declaration of its parameters: spawn_flags.json.

    python -m scripts.spawn_flags [--check]

``--check`` changes nothing and exits with 1 when the file is out of date. Every command that
spawns reads it, since ``RunSpec`` takes longer to import than all else that such a command does.

A parameter's flag is ``--`` and its name, without the unit at its end. Here stands only where the
command line differs: other names, placeholders, texts for people, and the parameters that have no
flag.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import inspect, json

from subagents.domain.run.parameter import SECTIONS, Parameter, leaves, parameters
from subagents.domain.run.spec import PATH_BYTES_MAX, RunSpec
from subagents.text import duration

FILE: Final = Path("src/subagents/cli/spawn_flags.json")
ARTIFACTS: Final = "verification.artifacts[]."
"""Flags of one file of a contract, whose order counts."""

NAMES: Final = {
    "agentId": ("--agent", "-a"),
    "label": ("--label", "-l"),
    "runTimeoutSeconds": ("--timeout",),
    "dependsOn": ("--after",),
    "forEach.run": ("--for-each",),
    "forEach.file": ("--items-file",),
    "fallbackAgentId": ("--fallback-agent",),
    "includeDependencyResult": ("--include-result",),
    "acceptPartialDependencies": ("--accept-partial",),
    "retryCount": ("--retry",),
    "retryUntilVerified": ("--until-verified",),
    "retryBackoff": ("--backoff",),
    "verification.requireCompletionReport": ("--require-report",),
    "verification.commands": ("--verify-cmd", "--verify-command"),
    "verification.judge.agentId": ("--judge",),
    "verification.judge.criteria": ("--judge-criteria",),
    "verification.judge.model": ("--judge-model",),
    "verification.judge.runTimeoutSeconds": ("--judge-timeout",),
    "verification.judge.access": ("--judge-access",),
    "progressReporting": ("--progress",),
    "toolsAllow": ("--allow-tool",),
    "toolsDeny": ("--deny-tool",),
    "budget.maxSeconds": ("--max-time",),
    "tags": ("--tag",),
    "path": ("--verify",),
    "json": ("--verify-json",),
    "junit": ("--verify-junit",),
    "regex": ("--verify-regex",),
    "fresh": ("--verify-existing",),
}
PAIRS: Final = {
    "cleanup": ("--keep", "--delete"),
    "expectsCompletionMessage": ("--completion-message", "--no-completion-message"),
}
"""A flag for each of two choices, in their order; of a switch, first for on."""
PLACEHOLDERS: Final = {
    "agentId": "AGENT",
    "fallbackAgentId": "AGENT",
    "cwd": "DIR",
    "dependsOn": "RUN",
    "forEach.run": "RUN",
    "forEach.file": "FILE",
    "gate": "QUESTION",
    "toolsAllow": "TOOL",
    "toolsDeny": "TOOL",
    "tags": "WORD",
    "retryOn": "TEXT",
    "verification.commands": "COMMAND",
    "idempotencyKey": "KEY",
    "path": "FILE",
    "requiredKeys": "A,B",
    "schema": "FILE",
    "sha256": "HEX",
    "regex": "REGEX",
    "newerThan": "FILE",
    "verification.mustChange": "GLOB",
    "verification.mustNotChange": "GLOB",
    "verification.judge.agentId": "AGENT",
    "verification.judge.criteria": "TEXT",
}
WITHOUT_FLAG: Final = {
    "task": "the argument",
    "chainAfter": "`--after` with one run",
    "verification.fresh": "`--verify-existing`",
    "verification.judge.budget": "in a plan file; as `budget`",
    "verification.judge.verification": "in a plan file; as `verification`",
    "continues": "`subagents continue`",
}
"""Parameters of ``RunSpec`` that have no flag, and what stands for them; all others have one."""
_UNITS: Final = ("Seconds", "Ms", "Usd")
_DURATIONS: Final = ("seconds", "milliseconds")
_KINDS: Final = {
    inspect.BoolType: "bool",
    inspect.EnumType: "str",
    inspect.IntType: "int",
    inspect.FloatType: "float",
}

HELP: Final = {
    "label": "A short name that can be used instead of its id.",
    "agentId": "The agent that does it. Default: the configured one, else command.",
    "model": "The model, for agents that let you choose one.",
    "thinking": "The thinking level, for agents that have one.",
    "progressReporting": "Ask the worker to report progress.",
    "tags": "A word to find it by.",
    "idempotencyKey": "Spawning again with the same key within 24 h returns the same run.",
    "path": "A file the work must leave behind, relative to --cwd. Repeatable; the flags down to "
    "--verify-existing apply to the --verify before them.",
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
    "retryCount": "Attempts after one that ended in an error; --until-verified is for checks.",
    "retryUntilVerified": "Attempts after a failed check, told what failed, in the same session if"
    " the agent has one; ends early when no file changes.",
    "retryAfresh": "With --until-verified: each in a new session.",
    "retryDelay": "Delay before the first retry.",
    "retryOn": "Retry only errors that contain this text.",
    "retryMaxTime": "Start no retry later than this.",
    "dependsOn": "Start after this run (id or label) has ended.",
    "forEach.run": "Start a run for each item of the list that is this run's result; ${{ item }} in"
    " the task is the item, ${{ item.NAME }} a field of it.",
    "forEach.file": "With --for-each: the list is in this file of its contract.",
    "forEach.maxItems": "A longer list is refused.",
    "forEach.maxParallel": "At most N of its items at once.",
    "gate": "Ask a person, and begin after a yes; --dependency-timeout without one is a no.",
    "includeDependencyResult": "Put the results of those runs before the task.",
    "onDependencyFailure": "What to do when one of them fails.",
    "fallbackAgentId": "With fallback: the agent that does the task then.",
    "acceptPartialDependencies": "A partial outcome of those runs is good enough.",
    "dependencyTimeoutSeconds": "Longest wait for those runs. Default: no limit.",
    "runTimeoutSeconds": "Time limit of each attempt; 0 means none.",
    "toolsAllow": "Allow only the tools named.",
    "toolsDeny": "Deny this tool, also to everything it spawns.",
    "access": "Only read, write below --cwd, or full. Default: all that its agent may.",
    "budget.maxTokens": "Tokens for the run and everything it spawns, without what comes from a "
    "cache; of `map`, for all of them.",
    "budget.maxTotalTokens": "The same with what comes from a cache.",
    "budget.maxCostUsd": "Cost of the run and everything it spawns; of `map`, of all of them.",
    "budget.maxRuns": "Most runs in its tree, itself included.",
    "budget.maxSeconds": "Time for the run, with retries and waits; of `map`, for all of them.",
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


class Flag(NamedTuple):
    """One flag of the command line."""

    parameter: Parameter
    names: tuple[str, ...]
    """The first is the one that messages use."""
    opposite: str = ""
    """The flag for the other one of two choices."""


def _flag(parameter: Parameter) -> Flag:
    name = parameter.name.removeprefix(ARTIFACTS)
    if name in PAIRS:
        first, second = PAIRS[name]
        return Flag(parameter, (first,), second)
    rule = name.rpartition(".")[2]
    for unit in _UNITS if name == parameter.name else ():
        rule = rule.removesuffix(unit)
    kebab = "".join(f"-{each.lower()}" if each.isupper() else each for each in rule)
    return Flag(parameter, NAMES.get(name, (f"--{kebab}",)))


FLAGS: Final = tuple(
    _flag(each) for each in leaves(parameters(RunSpec)) if each.name not in WITHOUT_FLAG
)


def row(flag: Flag) -> dict[str, Any]:
    """What the command line has to know of a flag; what is usual is left out."""
    each = flag.parameter
    name = each.name.removeprefix(ARTIFACTS)
    is_of_file = name != each.name
    most = each.items_max if each.is_list else each.chars_max
    found: dict[str, Any] = {
        "parameter": each.name,
        "names": flag.names,
        "opposite": flag.opposite,
        "kind": _kind(each, is_of_file=is_of_file),
        "choices": () if flag.opposite else each.choices,
        "sets": each.choices if flag.opposite and each.choices else (),
        "is_list": each.is_list and not is_of_file,
        "help": _help(each, HELP.get(name)),
        "metavar": _placeholder(each, PLACEHOLDERS.get(name, "")),
        "group": each.section,
        "unit": each.unit,
        "form": each.form,
        "low": each.low,
        "high": each.high,
        "most": PATH_BYTES_MAX if each.form == "path" else most,
    }
    usual = (None, "", (), "str")
    return {key: said for key, said in found.items() if said is not False and said not in usual}


def _kind(parameter: Parameter, *, is_of_file: bool) -> str:
    if parameter.unit in _DURATIONS or parameter.is_list:
        return "list" if is_of_file else "str"
    if parameter.name in PAIRS:
        return "bool"
    return _KINDS.get(type(parameter.type), "str")


def _placeholder(parameter: Parameter, given: str) -> str:
    if parameter.unit in _DURATIONS:
        return "DURATION"
    if isinstance(parameter.type, inspect.IntType):
        return "N"
    return (parameter.unit or "") if isinstance(parameter.type, inspect.FloatType) else given


def _help(parameter: Parameter, text: str | None) -> str:
    words = [text or f"{parameter.description}."]
    if parameter.is_list and not parameter.name.startswith(ARTIFACTS):
        words.append("Repeatable.")
    elif parameter.default not in (None, ()) and not isinstance(parameter.default, bool):
        words.append(f"Default: {_shown(parameter)}.")
    return " ".join(words)


def _shown(parameter: Parameter) -> str:
    """The default as it would be typed."""
    if parameter.unit not in _DURATIONS:
        return str(parameter.default)
    value = float(str(parameter.default))
    return duration(round(value * 1000 if parameter.unit == "seconds" else value))


def _lines() -> Iterator[str]:
    """A list in JSON, with a line for each flag."""
    yield "["
    flags = sorted(FLAGS, key=lambda flag: SECTIONS.index(flag.parameter.section))
    yield ",\n".join(json.encode(row(flag)).decode() for flag in flags)
    yield "]\n"


def main(arguments: Sequence[str]) -> int:
    """Write it, or check it."""
    text = "\n".join(_lines())
    if "--check" in arguments:
        if FILE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{FILE} is out of date: make docs", file=sys.stderr)
        return 1
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
