"""``subagents help TOPIC``: texts that belong to no single command."""

from typing import Final

from subagents import extension

EXIT_CODES: Final = """\
Exit codes

   0  success
   1  not as things stand now, an internal error, or a damaged database
   2  usage error: a flag, a value or the configuration is invalid; nothing was stored
   3  not found: no such run, message, question or agent
   4  denied by a guardrail; the message names the configuration key
   5  the run did not succeed (error, timeout, cancelled, lost, partial)
   6  verification failed: the run ended, but its contract is not met
   7  the daemon cannot be reached
   8  still pending after --timeout; `subagents ask`: nobody answered in time
   9  `subagents ask`: the answer is no (deny)
  10  the result is larger than what is kept of it (retention.max_result_mb), or its file is gone
 130  interrupted (Ctrl-C); runs continue

For several runs, the first of 3, 8, 5 and 6 that applies to any of them is used.

What was done decides, also where standard output or error is closed, full or read by nobody. Only
commands that just look end with 1, or 141 for a reader that has gone, when their output is lost.
"""

SELECTORS: Final = """\
Selectors: how to name a run

  r-abcdefghij    its id
  r-abc, abc      a unique prefix of the id, at least three characters
  tests           its label: the newest run of your session with it, or else of any session
  last            the newest run of your session

Commands that take several runs (list, wait, pause, resume, cancel) also accept:

  tree:RUN        a run and everything it spawned
  state:NAME      all runs in a state, or in several: state:working,needs-you
  plan:NAME       all runs of a plan, by its name or id
  tag:NAME        all runs with a tag
  dir:DIR         all runs that work in a directory or below it: dir:.

list finds runs by flags, too: --dir, --session, --agent, --label, --tag, --state, --since, --until,
--text. All that are given must fit. Finer than --state are --phase (and phase:NAME) and --outcome.

A label that reads like one of the others (last, tree:x, an id) is refused when it is given.

See also: subagents help states
"""

DURATIONS: Final = """\
Durations

  250ms  30s  5m  1h30m  2d    units in descending order
  PT5M   P1DT12H               ISO 8601, with days, hours, minutes, seconds
  90     1.5                   seconds

What is shorter than a millisecond counts as one, never as none.
At most 365d.
"""

STATES: Final = """\
States: what a run is, in one of six words

  waiting      for other runs, a free slot, its model's provider, a retry, or because it is paused
  working      its worker is at work, or its contract is being checked
  needs you    its worker asks, or it may only start after a yes
  ok           it succeeded, and its contract is met
  failed       an error, a contract that is not met, a time limit, a worker that got lost
  cancelled    somebody cancelled it

`list --state needs-you` finds them by these words. What is behind one: subagents why RUN

Programs see finer words, the phases (`list --phase`):

  waiting             waits for the runs it depends on
  queued              waits for a slot in its lane
  spawning            its worker is being started
  running             an attempt is running
  ending              its output is read to the end, its children settle
  verifying           its contract is being checked
  retry_wait          waits for the next attempt
  announcing          ended; the result is being delivered
  announce_deferred   ended; delivery is postponed
  cleanup_pending     delivered; files are being cleaned up
  completed           done
  completed_giveup    done, but nobody took the result: subagents inbox --attention
"""

ENVIRONMENT: Final = """\
Environment

  SUBAGENTS_HOME          one directory for configuration, state, cache and socket
  SUBAGENTS_A__B=value    sets the configuration key a.b (subagents config --origin)
  NO_COLOR                disables colours
  FORCE_COLOR             enables colours in pipes, too; --color always|never overrides both

Set by the daemon for workers:

  SUBAGENTS_RUN_ID  SUBAGENTS_SESSION_KEY  SUBAGENTS_AGENT_ID  SUBAGENTS_SOCKET
"""

JSON: Final = """\
JSON

Commands with --json print one document on stdout, also of an error. What of it:

  --json runId,outcome.status    only these fields of each row, or of the one document
  --format '{runId}\\t{label}'    a line for each row; {{ is a brace, - stands for null
  --jq '.runs[].label'           a jq expression, texts without quotes; needs subagents[jq]

One field is --json=phase. Of these flags, `run` and `spawn` take --json=FIELDS alone.

For example:

  subagents list --format '{runId} {agentId} {outcome.status}'
  subagents list --now last --json=phase,usage

`run` and `wait` print completed, pending and errors. Of each that is completed:

  runId label phase retryAttemptedAt usage artifacts filesLeft workspace messageId announcement
  outcome         status (ok, error, timeout, cancelled, lost, partial), reason, error
  verification    status, checks; null = it has no contract
  result resultBytes truncated keptBytes report lastWords

Fields of any document: ask for --json=?; of all: GET /openapi.json, or the reference of HTTP
"""

_CORE: Final = {
    "exit-codes": EXIT_CODES,
    "selectors": SELECTORS,
    "durations": DURATIONS,
    "states": STATES,
    "environment": ENVIRONMENT,
    "json": JSON,
}


def topics() -> list[str]:
    """All of them; those of extensions come last."""
    return [*_CORE, *(name for each in extension.found().used for name in each.topics)]


def text_of(topic: str) -> str:
    """What ``subagents help TOPIC`` prints."""
    if topic in _CORE:
        return _CORE[topic]
    targets = (each.topics[topic] for each in extension.found().used if topic in each.topics)
    text: str = extension.loaded(next(targets))()
    return text
