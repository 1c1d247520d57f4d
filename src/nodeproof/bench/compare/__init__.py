"""Numbers held against each other: two runs, a run and its reference, a row of runs over time."""
