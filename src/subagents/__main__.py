"""``python -m subagents`` is the command ``subagents``."""

import sys

from subagents.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
