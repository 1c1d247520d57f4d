"""Single answers out of the samples of a cell, for what is judged one by one: budget, cache, rates of the server."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.guards.cache import CachedPrompt
from nodeproof.bench.load.samples import COUNTED, OUTCOMES, ROW, TICK_S, read_blocks

__all__ = ["Answers", "read_answers"]

_OK = np.array([outcome.ok for outcome in OUTCOMES])

_Column = NDArray[np.float64]


class Answers:
    """Whole answers of one cell, in the order of their numbers. Times are of the clock that the name says; NaN = not told."""

    def __init__(self, rows: NDArray[np.void], gaps_ms: _Column, *, failed: int = 0, all_tokens: int = 0) -> None:
        self._rows = rows
        self.gaps_ms = gaps_ms
        """Client's clock: from one read that brought a token to the next; chunks of one read have no gap between them."""
        self.failed = failed
        """Requests of the cell that brought no whole answer, those of its warm-up among them."""
        self.all_tokens = all_tokens
        """Completion tokens of all whole answers of the cell, those that do not count among them."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def outcomes(self) -> list[str]:
        """How each ended."""
        return [str(OUTCOMES[int(code)]) for code in self._rows["outcome"]]

    @property
    def tokens(self) -> list[int | None]:
        """Completion tokens as the server counted them; None where it did not."""
        counted = self._rows["flags"] & COUNTED > 0
        return [int(count) if known else None for count, known in zip(self._rows["completion_tokens"], counted, strict=True)]

    def delivered(self, enough: float) -> list[int | None]:
        """As :attr:`tokens`; where the server counted none, chunks stand for them if there are ``enough``: each holds one."""
        chunks = self._rows["chunks"]
        return [
            int(chunk) if count is None and chunk >= enough else count for count, chunk in zip(self.tokens, chunks, strict=True)
        ]

    @property
    def prompts(self) -> list[CachedPrompt]:
        """Length of each prompt, and what of it was cached."""
        pairs = zip(self._rows["prompt_tokens"].tolist(), self._rows["cached_tokens"].tolist(), strict=True)
        return [CachedPrompt(_told(prompt), _told(cached)) for prompt, cached in pairs]

    @property
    def accepted(self) -> list[int | None]:
        """Drafted tokens that the model accepted."""
        return [_told(count) for count in self._rows["accepted_tokens"].tolist()]

    @property
    def output(self) -> _Column:
        """Tokens of each answer, by whoever counted them."""
        return self._rows["completion_tokens"].astype(np.float64)

    @property
    def ttft_ms(self) -> _Column:
        """Client's clock, from the first byte sent to the chunk with the first token."""
        found: _Column = (self._rows["first_token_s"] - self._rows["sent_s"]) * 1e3
        return found

    @property
    def e2e_ms(self) -> _Column:
        """Client's clock, from the first byte sent to the last one read."""
        found: _Column = (self._rows["end_s"] - self._rows["sent_s"]) * 1e3
        return found

    @property
    def client_tpot_ms(self) -> _Column:
        """Client's clock, from the first token to the last, a token after the first; NaN for an answer that came in one chunk."""
        rows = self._rows
        spread = (rows["last_token_s"] - rows["first_token_s"]) * 1e3
        return _per_token(np.where(rows["chunks"] >= 2, spread, np.nan), self.output)

    @property
    def server_ttft_ms(self) -> _Column:
        """Server's clock, as it says."""
        return _positive(self._rows["server_ttft_ms"], zero=True)

    @property
    def server_tpot_ms(self) -> _Column:
        """Server's clock: its decode time a token after the first, else the reciprocal of the rate that it tells."""
        decode = _per_token(_positive(self._rows["server_decode_ms"]), self.output)
        return np.where(np.isfinite(decode), decode, 1e3 / self._rate)

    @property
    def server_tok_s(self) -> _Column:
        """Server's clock: the rate that it tells, else the tokens after the first through its decode time."""
        decode = 1e3 / _per_token(_positive(self._rows["server_decode_ms"]), self.output)
        return np.where(np.isfinite(self._rate), self._rate, decode)

    @property
    def _rate(self) -> _Column:
        return _positive(self._rows["server_tokens_per_s"])


def read_answers(paths: Sequence[str], window_s: tuple[float, float]) -> Answers:
    """The whole answers to requests that began within ``window_s``; damaged blocks are left out (the report names them)."""
    kept, gaps_ms, failed, tokens = [np.zeros(0, dtype=ROW)], [np.zeros(0)], 0, 0
    for path in paths:
        for block in read_blocks(path):
            if block.kind != "requests" or block.problem:
                continue
            rows, gaps = block.samples()
            whole = _OK[rows["outcome"]]
            failed += int((~whole).sum())
            tokens += int(rows["completion_tokens"][whole].sum())
            wanted = whole & (rows["scheduled_s"] >= window_s[0]) & (rows["scheduled_s"] <= window_s[1])
            owners = np.repeat(np.arange(len(rows)), np.maximum(rows["chunks"].astype(np.int64) - 1, 0))
            kept.append(rows[wanted])
            gaps_ms.append(gaps[wanted[owners] & (gaps > 0)] * (TICK_S * 1e3))
    rows = np.concatenate(kept)
    ordered = rows[np.argsort(rows["number"], kind="stable")]
    return Answers(ordered, np.concatenate(gaps_ms), failed=failed, all_tokens=tokens)


def _told(count: int) -> int | None:
    return count if count >= 0 else None


def _positive(values: NDArray[np.float32], *, zero: bool = False) -> _Column:
    """Finite values above 0; everything else is not told."""
    found = values.astype(np.float64)
    sound = np.isfinite(found) & ((found >= 0) if zero else (found > 0))
    return np.where(sound, found, np.nan)


def _per_token(spans_ms: _Column, tokens: _Column) -> _Column:
    """Time a token after the first; NaN below two tokens and for spans that are none."""
    known = np.isfinite(spans_ms) & (tokens >= 2) & (spans_ms > 0)
    return np.where(known, spans_ms / np.maximum(tokens - 1, 1), np.nan)
