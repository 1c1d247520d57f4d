"""Component system: the node as a whole, put together in ``collector``."""
