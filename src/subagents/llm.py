"""``python -m subagents.llm ASSIGNMENT``: the agent loop under the name that 0.1.0 gave it.

A daemon of 0.1.0 that continues running while the package is upgraded starts its ``llm`` workers by
this name until it is restarted. A loop that already runs needs nothing of the old modules: all of
them were imported before its first request. To be removed in 0.3.0.
"""

from subagents.agent_loop.__main__ import run_and_exit

if __name__ == "__main__":
    run_and_exit()
