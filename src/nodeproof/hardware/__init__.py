"""The box under a run: watched before, during and after, judged by rules that are data."""
