"""Support archives: what a stranger needs to understand this node, without what would tell whose node it is."""
