"""How long a server takes to answer as it does undisturbed."""

import asyncio
import statistics
import time
from typing import NamedTuple

from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Client
from nodeproof.bench.exchange import Exchange

__all__ = ["Baseline", "Recovery", "recover", "undisturbed"]

_FACTOR = 3.0
_SLACK_S = 0.5
_PAUSE_S = 0.05


class Baseline(NamedTuple):
    """Answers of a server that nobody disturbs."""

    exchanges: list[Exchange]

    @property
    def whole(self) -> bool:
        """Whether all were answered."""
        return all(exchange.ok for exchange in self.exchanges)

    @property
    def median_s(self) -> float:
        """Time of a whole answer."""
        return statistics.median(exchange.e2e_s for exchange in self.exchanges)

    @property
    def healthy_s(self) -> float:
        """An answer that takes longer is not that of a healthy server: three times the median, half a second more."""
        return self.median_s * _FACTOR + _SLACK_S

    @property
    def text(self) -> str | None:
        """What is always answered; None when answers differ by themselves."""
        texts = {exchange.text for exchange in self.exchanges}
        return texts.pop() if len(texts) == 1 else None


class Recovery(NamedTuple):
    """The way back after a fault."""

    seconds: float | None
    """From the end of the fault to the end of the first healthy answer; None when none came in time."""
    tries: int
    detail: str
    """What the last answer was, if it was not healthy."""
    text: str = ""


async def undisturbed(client: Client, ask: Ask, times: int) -> Baseline:
    """Ask so many times, one after the other."""
    return Baseline([await client.send(ask) for _ in range(times)])


async def recover(client: Client, ask: Ask, healthy_s: float, limit_s: float) -> Recovery:
    """Ask until the answer is whole and comes in time, for at most ``limit_s``."""
    begun_s = time.monotonic()
    tries, detail = 0, ""
    while (left_s := begun_s + limit_s - time.monotonic()) > 0:
        tries += 1
        try:
            async with asyncio.timeout(left_s):
                exchange = await client.send(ask)
        except TimeoutError:
            return Recovery(None, tries, detail or f"no answer within {left_s:.3g} s")
        if exchange.ok and exchange.e2e_s <= healthy_s:
            return Recovery(exchange.end_s - begun_s, tries, detail, exchange.text)
        took = f"whole, but after {exchange.e2e_s:.3g} s" if exchange.ok else f"{exchange.outcome}: {exchange.detail}"
        detail = took[:200]
        await asyncio.sleep(_PAUSE_S)
    return Recovery(None, tries, detail)
