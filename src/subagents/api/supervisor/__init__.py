"""The supervisor socket: a program watches over runs by lines of JSON (seed 003, TGCC).

``lines`` reads them, ``messages`` says what they mean, ``actions`` does what a command asks for,
``stream`` pushes what happens, and ``door`` lets supervisors in.

Source: 4-observability §8; docs/supervisor.md.
"""
