"""The runner: one process that owns stress jobs, and everybody else its client over a Unix socket.

Requests carry names from a fixed list and numbers, never a command, path, argument or environment.
"""
