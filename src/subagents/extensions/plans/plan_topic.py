"""``subagents help plans``."""

import textwrap
from typing import Final

from subagents.api.wire.requests import FLAGS
from subagents.domain.run.spec import RunSpec

PLANS: Final = """\
Plan files: start many runs at once, or none (subagents plan run FILE)

    # nightly.toml
    name = "nightly"                                        # without it, as the file is called
    budget = { max_cost_usd = 2.5, max_seconds = 3600 }      # of all runs together; optional
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

A run for each item of another's result (a JSON list, or lines), and a step for a person:

    [[runs]]
    label = "fix"
    for_each = { run = "find", max_items = 20 }             # at once: max_parallel = 2
    task = "fix ${{ item.file }}"                           # a field of it; ${{ item }}, all of it

    [[runs]]
    gate = "Ship it?"
    after = ["fix"]

  subagents plan run FILE --dry-run what would start; nothing is
  subagents plan run --schema       the JSON Schema, for editors
  subagents map 'wc -l {}' *.py     a plan of one task for many items

A plan has an id (that of its first run). By its id, its name or `last`:

  subagents show plan:nightly       how each step stands
  subagents wait plan:nightly       wait for it, print the results
  subagents retry plan:nightly      start again what failed, and what waited for it
  subagents cancel plan:nightly     end what has not ended
  subagents list plan:nightly       all its runs

YAML and JSON work as well, and so do the names of parameters over HTTP. All fields:

{fields}

For types and meaning: subagents run --help
"""


def text() -> str:
    """The topic, with the names of all fields."""
    flags = {own: flag for flag, own in FLAGS.items()}
    names = (flags.get(each, each) for each in RunSpec.__struct_fields__)
    fields = textwrap.wrap(", ".join(names), width=96)
    return PLANS.replace("{fields}", textwrap.indent("\n".join(fields), "  "))
