"""What only root may read, for a daemon that is not root.

A small process of root's (:mod:`server`) opens a fixed list of files and runs a fixed list of commands (:mod:`rights`) for
whoever may connect to its socket, and hands descriptors over. The daemon asks it (:mod:`client`) where the kernel says no.
"""
