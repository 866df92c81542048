"""``subagents help TOPIC``: texts that belong to no single command."""

from typing import Final

EXIT_CODES: Final = """\
Exit codes

   0  success
   1  internal error, or a damaged database
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

Commands that take several runs (list, wait, status, watch, pause, resume, cancel) also accept:

  tree:RUN        a run and everything it spawned
  phase:NAME      all runs in a phase, or in several: phase:queued,running
  plan:NAME       all runs of a plan, by its name or id
  tag:NAME        all runs with a tag
  dir:DIR         all runs that work in a directory or below it: dir:.

list, tree, status and watch find runs by flags, too: --dir, --session, --agent, --label, --tag,
--phase, --outcome, --since, --until, --text. All that are given must fit. --phase, --outcome and
phase: take every word that a list shows as STATE: failed, blocked and paused, too.

A label that reads like one of the others (last, tree:x, an id) is refused when it is given.

See also: subagents help phases
"""

DURATIONS: Final = """\
Durations

  250ms  30s  5m  1h30m  2d    units in descending order
  PT5M   P1DT12H               ISO 8601, with days, hours, minutes, seconds
  90     1.5                   seconds

What is shorter than a millisecond counts as one, never as none.
At most 365d.
"""

PHASES: Final = """\
Phases: the stages of a run

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
  completed_giveup    done; delivery was given up, the result is kept (subagents attention)

To see why a run is in its phase: subagents why RUN
"""

PLANS: Final = """\
Plan files: start many runs at once, or none (subagents plan run FILE)

    # nightly.toml
    name = "nightly"                                        # without it, as the file is called
    budget = { max_tokens = 500000, max_cost_usd = 2.5 }    # of all runs together; optional
    jobs = 4                                                # at most so many at once; optional

    [[runs]]
    label = "count"
    task = "wc -l *.py > lines.txt"
    verification = { artifacts = [{ path = "lines.txt", min_bytes = 1 }] }

    [[runs]]
    label = "report"
    task = "sort -n lines.txt"
    after = ["count"]
    retry = 2
    env = { LC_ALL = "C" }                                  # for this run alone

A run with a matrix becomes one for each combination; variables have defaults in `vars`:

    vars = { branch = "main" }                              # --var branch=next is stronger

    [[runs]]
    label = "test"                                          # test (3.11), test (3.12)
    matrix = { python = ["3.11", "3.12"] }
    task = "uvx -p ${{ matrix.python }} pytest > ${{ vars.branch }}-${{ matrix.python }}.log"

    [[runs]]
    task = "cat *.log"
    after = ["test"]                                        # on all of them

  subagents plan dry-run FILE       what would start; nothing is
  subagents plan schema             the JSON Schema, for editors
  subagents map 'wc -l {}' *.py     a plan of one task for many items

A plan has an id (that of its first run). By its id, its name or `last`:

  subagents plan show nightly       how each step stands
  subagents plan wait nightly       wait for it, print the results
  subagents plan retry nightly      start again what failed, and what waited for it
  subagents plan cancel nightly     end what has not ended
  subagents list plan:nightly       all its runs

YAML and JSON work as well, and so do the names of parameters over HTTP. All fields:

{fields}

For types and meaning: subagents run --help
"""

ENVIRONMENT: Final = """\
Environment

  SUBAGENTS_HOME          one directory for configuration, state, cache and socket
  SUBAGENTS_A__B=value    sets the configuration key a.b (subagents config show --origin)
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

One field is --json=phase. `run` and `spawn` take --json=FIELDS only: other flags may be of the
command that they start.

For example:

  subagents list --format '{runId} {agentId} {outcome.status}'
  subagents status last --json=phase,usage
"""

TOPICS: Final = {
    "exit-codes": EXIT_CODES,
    "selectors": SELECTORS,
    "durations": DURATIONS,
    "phases": PHASES,
    "plans": PLANS,
    "environment": ENVIRONMENT,
    "json": JSON,
}


def text_of(topic: str) -> str:
    """What ``subagents help TOPIC`` prints."""
    text = TOPICS[topic]
    if text is not PLANS:
        return text
    import textwrap  # noqa: PLC0415  the overview needs none of this

    from subagents.api.wire.requests import FLAGS  # noqa: PLC0415
    from subagents.domain.run.spec import RunSpec  # noqa: PLC0415

    flags = {own: flag for flag, own in FLAGS.items()}
    names = (flags.get(each, each) for each in RunSpec.__struct_fields__)
    fields = textwrap.wrap(", ".join(names), width=96)
    return text.replace("{fields}", textwrap.indent("\n".join(fields), "  "))
