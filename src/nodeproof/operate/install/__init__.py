"""``nodeproof install`` and ``uninstall``: what an installation consists of, and how it is made and undone step by step."""
