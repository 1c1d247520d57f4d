"""Numbers about an inference endpoint that can be believed: the client as an instrument, load, statistics, benchmarks.

What other code uses: :class:`nodeproof.bench.client.Client` (one exchange at a time, asyncio) and
:class:`nodeproof.bench.session.Session` (the same for code that blocks, such as a benchmark), :class:`nodeproof.bench.ask.Ask`
(what to send), :class:`nodeproof.bench.exchange.Exchange` (what came of it, with every time stamp), and
:mod:`nodeproof.bench.testing` (a server that does exactly what it is told).
"""
