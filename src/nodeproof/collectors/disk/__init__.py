"""Component disk: one file a source, put together in ``collector``."""
