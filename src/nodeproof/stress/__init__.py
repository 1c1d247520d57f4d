"""Stress jobs: real load on this machine, watched while it runs, judged by what it proved."""
