"""One file a component: joins what ``host`` reads with what ``sources`` understands into metrics."""
