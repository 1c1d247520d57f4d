"""The composition of a daemon: what is built from a configuration, and how it lives and ends."""
