"""Ways to run a benchmark: our own workload, the administrator's dispatcher script, or native programs."""
