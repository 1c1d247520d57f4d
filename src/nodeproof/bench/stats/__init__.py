"""Statistics of raw samples: percentiles with minimum samples, intervals, goodput, and the report of a run."""
