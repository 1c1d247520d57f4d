"""Sources that feed more than one collector: one reader each, whoever asks."""
