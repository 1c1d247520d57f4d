"""From points to words."""

from nodeproof.model.health import HealthScore, Verdict

__all__ = ["verdict"]


def verdict(score: HealthScore | None, *, problem: str = "") -> Verdict:
    """The answer of ``check``: 0 sound, 1 warning, 2 critical, 3 unknown.

    ``score`` is the daemon's last, None when there is none. ``problem`` says why it must not be believed (stale, daemon dead,
    no snapshot directory); with one the answer is 3 whatever the score.
    """
    raise NotImplementedError
