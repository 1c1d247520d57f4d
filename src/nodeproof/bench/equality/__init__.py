"""Whether an endpoint answers the same whatever else it does: order, neighbours, concurrency and its own caches."""
