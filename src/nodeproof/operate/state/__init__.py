"""The state directory as a whole: which form it has, whether what lies there can be read, and what to do when it cannot."""
