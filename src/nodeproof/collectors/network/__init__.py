"""Component network: one file a source, put together in ``collector``."""
