"""``subagents help TOPIC``: texts that belong to no single command."""

from typing import Final

EXIT_CODES: Final = """\
Exit codes

   0  ok
   1  failed: something inside, or the database cannot be trusted
   2  usage: a flag, a value or the configuration is wrong; nothing was stored
   3  not found: no such run, message, question or agent
   4  denied: a guardrail refused; the message names the configuration key
   5  the run ended unsuccessfully (error, timeout, cancelled, lost, partial)
   6  verification failed: the work ended, but its contract is not met
   7  the daemon cannot be reached
   8  still pending when --timeout was over
 130  interrupted (Ctrl-C); runs go on

Of several runs the first of 3, 8, 5, 6 that applies to any of them is given.
"""

SELECTORS: Final = """\
Selectors: how a run is named

  r-abcdefghij    its id
  r-abc, abc      a beginning of the id that only one run has, three characters or more
  tests           its label; the newest of your session with it, else of anybody
  last            the newest run of your session

Where a command takes several runs (list, wait, status, watch, pause, resume, cancel):

  tree:RUN        a run and all that it spawned
  phase:NAME      every run in a phase; phase:queued,running for two

See also: subagents help phases
"""

DURATIONS: Final = """\
Durations

  250ms  30s  5m  1h30m  2d    parts from large to small
  PT5M   P1DT12H               ISO 8601, with days, hours, minutes, seconds
  90     1.5                   seconds

At most 365d.
"""

PHASES: Final = """\
Phases: where a run is in its life

  waiting             for the runs it depends on
  queued              for a slot of its lane
  spawning            its runtime was told to start
  running             an attempt is alive
  ending              output is drained, runs it spawned settle
  verifying           its contract is checked
  retry_wait          the next attempt is due at a stored time
  announcing          it ended; its requester is being told
  announce_deferred   telling waits, for a stored reason
  cleanup_pending     told; files are tidied up
  completed           over
  completed_giveup    over; telling was given up, the result is kept (subagents attention)

Why a run is where it is: subagents why RUN
"""

PLANS: Final = """\
Plan files: many runs at once, all or none (subagents plan run FILE)

    # nightly.toml
    [[runs]]
    label = "count"
    task = "wc -l *.py > lines.txt"
    verification = { artifacts = [{ path = "lines.txt", min_bytes = 1 }] }

    [[runs]]
    label = "report"
    task = "sort -n lines.txt"
    depends_on = ["count"]
    retry_count = 2

The same as YAML or JSON, in snake_case or camelCase. All fields:

{fields}

Their types, bounds and defaults: docs/spawn-parameters.md; what they mean: subagents run --help
"""

ENVIRONMENT: Final = """\
Environment

  SUBAGENTS_HOME          holds configuration, state, cache and socket, all in one directory
  SUBAGENTS_A__B=value    sets the configuration key a.b (subagents config show --origin)
  NO_COLOR                no colours

For workers, set by the daemon:

  SUBAGENTS_RUN_ID  SUBAGENTS_SESSION_KEY  SUBAGENTS_AGENT_ID  SUBAGENTS_SOCKET
"""

TOPICS: Final = {
    "exit-codes": EXIT_CODES,
    "selectors": SELECTORS,
    "durations": DURATIONS,
    "phases": PHASES,
    "plans": PLANS,
    "environment": ENVIRONMENT,
}


def text_of(topic: str) -> str:
    """What ``subagents help TOPIC`` prints."""
    text = TOPICS[topic]
    if text is not PLANS:
        return text
    import textwrap  # noqa: PLC0415  the overview needs none of this

    from subagents.domain.run.spec import RunSpec  # noqa: PLC0415

    fields = textwrap.wrap(", ".join(RunSpec.__struct_fields__), width=96)
    return text.replace("{fields}", textwrap.indent("\n".join(fields), "  "))
