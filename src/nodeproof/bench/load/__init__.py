"""The load generator: plans, arrivals, prompts, worker processes, raw samples, and the benchmark ``load``."""
