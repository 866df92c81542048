"""Sends what runs did to a receiver of the user's choice; nothing without one.

``export`` decides what is sent and when, ``otlp`` how. Only the latter needs ``subagents[otel]``.
"""
