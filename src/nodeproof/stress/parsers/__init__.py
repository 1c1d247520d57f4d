"""Pure readers of what benchmark programs print: bytes in, values and a verdict with its evidence out.

Each module reads one program's output and returns a ``Judgement`` (``judgement.py``). None of them raises: output that proves
nothing is a verdict of its own. Nothing here touches the machine or the clock.
"""
