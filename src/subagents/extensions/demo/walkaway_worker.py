"""What the workers of ``subagents demo --walkaway`` do, and the script that stands for an agent.

    python -I walkaway_worker.py LABEL      (in a directory with ``steps.sh``)

Nothing of subagents is imported.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

STEPS: Final = """\
#!/bin/sh
# A line every {seconds} s: number of the step, seconds since 1970, pid of this shell.
i=0
while [ $i -lt {count} ]; do
  i=$((i + 1))
  echo "$i $(date +%s) $$" >> steps.log
  sleep {seconds}
done
echo "all {count} steps done"
"""
TASK: Final = """\
Work only in the current directory. Run this command in the foreground, with a time limit of at
least {limit} seconds, and wait until it has ended:

    sh steps.sh

It takes about {takes} seconds; do not start it a second time. When it has ended, look how many
lines steps.log has, and write the file report.json with one JSON object:

    {{"worker": "{label}", "steps": NUMBER OF LINES}}

Then say in one sentence how many steps were done.
"""


def main() -> int:
    """Do what the task says."""
    subprocess.run(["sh", "steps.sh"], check=True, stdout=subprocess.DEVNULL)
    done = len(Path("steps.log").read_text(encoding="utf-8").splitlines())
    report = {"worker": sys.argv[1], "steps": done}
    Path("report.json").write_text(json.dumps(report), encoding="utf-8")
    sys.stdout.write(f"{done} steps were done.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
