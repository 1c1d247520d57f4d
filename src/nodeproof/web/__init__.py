"""The page for one node and its JSON, served from the files of a snapshot directory; imported only where it is served."""
