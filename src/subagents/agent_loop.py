"""``python -m subagents.agent_loop ASSIGNMENT``: as ``subagents.llm``, the name of 0.2.0."""

from subagents.extension import loaded

if __name__ == "__main__":
    loaded("subagents.extensions.llm.agent_loop.__main__:run_and_exit")()
