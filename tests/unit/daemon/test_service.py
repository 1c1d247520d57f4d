"""What a reload leaves behind."""

import gc
import weakref

from nodeproof.daemon.service import _settle_memory


class _Runtime:
    def __init__(self) -> None:
        self.itself = self


def test_the_runtime_before_a_reload_is_given_up_though_it_was_settled() -> None:
    first = _Runtime()
    gone = weakref.ref(first)
    try:
        _settle_memory()
        assert gone() is first
        del first
        _settle_memory()
        assert gone() is None
    finally:
        gc.unfreeze()
