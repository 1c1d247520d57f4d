"""When collectors run, how they are kept apart, and what they cost."""
