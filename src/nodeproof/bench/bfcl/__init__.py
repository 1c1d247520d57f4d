"""Tool calls held against known answers.

Data and checker are those of the published ``bfcl-eval`` package, in an environment of their own; draw, questions and counts
are ours.
"""
