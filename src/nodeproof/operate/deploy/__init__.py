"""``nodeproof deploy``: stress items and containers of a node: generated, installed, started, watched and taken down."""
