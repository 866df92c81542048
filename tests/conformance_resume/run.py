"""Six properties of resuming, tried on an installed `subagents` from outside; one table at the end.

    python3 -m tests.conformance_resume.run [--program subagents] [--nodes 3] [--seed N]
        [--kills 20] [--only prefix,effects,fork,checkpoint,consume,recovery]

Needs Python alone, and for several nodes PostgreSQL's programs and ``subagents[cluster]``. All of
it happens in a temporary directory. Exits with 1 when a verdict is not the one that
docs/resume-means-resume.md has. ``make conformance-resume`` calls it.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.conformance_resume.cluster import several_nodes
from tests.conformance_resume.service import one_machine
from tests.conformance_resume.trials import TRIALS
from tests.conformance_resume.verdicts import Row, Says

KILLS: Final = 20
WIDTH: Final = 60


def main(arguments: Sequence[str]) -> int:
    """Try them; 0 = each verdict is the one that the page has."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.conformance_resume.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--program", default="subagents", help="the command under trial")
    parser.add_argument("--nodes", type=int, default=1, help="of a cluster, on this machine")
    parser.add_argument("--seed", type=int, help="random when not given")
    parser.add_argument("--kills", type=int, default=KILLS, help="for each property, at least")
    parser.add_argument("--only", default=",".join(TRIALS), help="of " + ", ".join(TRIALS))
    given = parser.parse_args(arguments)
    names = given.only.split(",")
    if unknown := sorted(set(names) - set(TRIALS)):
        parser.error(f"no property {', '.join(unknown)}; there are {', '.join(TRIALS)}")
    program = shutil.which(given.program)
    if program is None:
        parser.error(f"--program: there is no command {given.program}")
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    # Whoever gives up on it says so by TERM: daemons are still ended then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended before its end"))
    begun = time.monotonic()
    rows = tried(names, Path(program).absolute(), nodes=given.nodes, seed=seed, kills=given.kills)
    where = "one machine" if given.nodes == 1 else f"{given.nodes} nodes on one PostgreSQL"
    again = f"make conformance-resume NODES={given.nodes} SEED={seed} KILLS={given.kills}"
    odd = [each for each in rows if not each.is_as_documented]
    verdict = f"{len(odd)} not as documented" if odd else "all as documented"
    sys.stdout.write(
        f"\n{table(rows)}\n{where}: {verdict}; {time.monotonic() - begun:.0f} s."
        f"\nagain: {again} ONLY={given.only}\n"
    )
    return 1 if odd else 0


def tried(names: Sequence[str], program: Path, *, nodes: int, seed: int, kills: int) -> list[Row]:
    """The properties of those names, in a place that is kept when one is not as documented."""
    root = Path(tempfile.mkdtemp(prefix="sa-resume-", dir="/tmp"))
    chance = random.Random(seed)  # noqa: S311 - no secret
    say(f"seed {seed}, at least {kills} kills for each property, in {root}")
    made = one_machine(program, root, chance)
    if nodes > 1:
        made = several_nodes(program, root, chance, nodes=nodes)
    rows: list[Row] = []
    with made as service:
        for name in names:
            begun = time.monotonic()
            # So that one property can be tried again without those before it.
            chance.seed(f"{name}/{seed}")
            service.begin(name)
            try:
                rows += TRIALS[name](service, kills)
            except Exception as error:  # noqa: BLE001 - whatever stops a trial is a finding
                traceback.print_exc()
                wrong = (f"{type(error).__name__}: {error}",)
                rows.append(Row(name, "-", 0, 0, Says.DOES_NOT, "it did not end", wrong))
            say(f"{name}: {time.monotonic() - begun:.0f} s")
    if all(each.is_as_documented for each in rows):
        shutil.rmtree(root, ignore_errors=True)
    return rows


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def table(rows: Sequence[Row]) -> str:
    """One line for each, and below it what its verdict rests on."""
    head = ("property", "tried as", "trials", "kills", "verdict")
    cells = [head] + [
        (each.name, each.tried, str(each.trials), str(each.kills), each.says) for each in rows
    ]
    widths = [max(len(line[at]) for line in cells) for at in range(len(head))]
    lines = []
    for line, each in zip(cells, [None, *rows], strict=True):
        left = "  ".join(f"{line[at]:<{widths[at]}}" for at in range(2))
        right = "  ".join(f"{line[at]:>{widths[at]}}" for at in range(2, 4))
        lines.append(f"{left}  {right}  {line[4]}")
        if each is not None:
            lines += [f"    {part}" for part in textwrap.wrap(each.evidence, 2 * WIDTH)]
            lines += [f"    WRONG {what}" for what in each.wrong]
            if each.says is not each.expected:
                lines.append(f"    WRONG the page says: {each.expected}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
