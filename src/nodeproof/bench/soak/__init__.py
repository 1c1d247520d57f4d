"""A long load: whether latency, rate, memory and descriptors are at its end what they were at its beginning."""
