"""Component cpu: one file a source, put together in ``collector``."""
