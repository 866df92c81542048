"""The worker program of the runtime ``llm``: a small agent loop on any model's API.

Started by ``llm_runtime`` as ``python -m subagents.extensions.llm.agent_loop ASSIGNMENT``, and
imported by nobody. It prints structured events (``worker_events``) and reads messages from standard
input. It holds no rule of the engine's: it works, prints what it does, and ends with a result.
"""
