"""The supervisor socket: a program watches over runs by lines of JSON.

``lines`` reads them, ``messages`` says what they mean, ``actions`` does what a command asks for,
``stream`` pushes what happens, and ``supervisor_socket`` accepts supervisors.

See docs/supervisor.md.
"""
