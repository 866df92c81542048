"""``python -m subagents.llm ASSIGNMENT``: the agent loop under the name that 0.1.0 gave it.

A daemon of an older version that goes on running while the package is upgraded starts its ``llm``
workers by this name, or by ``subagents.agent_loop``, until it is restarted. A loop that runs needs
nothing of the old modules: all of them were imported before its first request. To be removed in
0.4.0.
"""

from subagents.extension import loaded

if __name__ == "__main__":
    loaded("subagents.extensions.llm.agent_loop.__main__:run_and_exit")()
