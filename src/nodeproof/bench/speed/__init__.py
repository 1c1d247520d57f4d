"""How fast an endpoint is: ``quick-speed``, ``concurrency-sweep``, ``ttft-warm``, ``ttft-cold`` and ``decode-floor``.

Each is made of cells, and each cell is a load of its own (:mod:`nodeproof.bench.load.measure`): sent by worker processes, kept as
raw samples, judged with the box around it, and measured again when the box was not fit. What the reference's benchmarks of
these names measure is measured here; where it measures badly (bench.md 9.1, L16 to L23) it is done otherwise, see docs/bench.md.
"""
