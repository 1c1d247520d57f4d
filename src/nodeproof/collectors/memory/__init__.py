"""Component memory: one file a source, put together in ``collector``."""
