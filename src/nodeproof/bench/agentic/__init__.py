"""Models that act: a program written, tested and run in a sandbox, and recorded sessions continued turn by turn."""
