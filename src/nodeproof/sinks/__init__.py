"""Where batches go: the latest values, snapshot files, data files, Prometheus text. No sink can hurt another."""
