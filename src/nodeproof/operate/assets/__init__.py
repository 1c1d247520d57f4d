"""``nodeproof assets``: STREAM, HPL and HPCG out of an administrator's own sources, and whether they are still what was built."""
