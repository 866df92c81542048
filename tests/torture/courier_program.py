"""A courier's program: keeps what it is told in the diary of the session ``program``.

python -S courier_program.py DIARY_DIRECTORY    (the announcement on standard input)
"""

import os
import random
import sys
import time

DAWDLE_S = 0.3

place = sys.argv[1]
name = f"take-{time.monotonic_ns()}-{os.getpid()}"
told = sys.stdin.buffer.read()
time.sleep(random.uniform(0, DAWDLE_S))
with open(os.path.join(place, name), "wb") as take:  # noqa: PTH118, PTH123  no imports but these
    take.write(told)
    take.flush()
    os.fsync(take.fileno())
