"""What must be proven, by which records, and whether it is: ``bench.toml``, judged against stored and signed runs."""
