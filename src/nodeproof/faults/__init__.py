"""Faults: kernel events and findings made into faults, without a flood."""
