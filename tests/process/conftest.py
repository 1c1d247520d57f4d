"""Real daemons for the tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon

MakeDaemon = Callable[..., Daemon]


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[MakeDaemon]:
    """Makes daemons, not yet started; all are ended with the test."""
    made: list[Daemon] = []

    def make(name: str = "daemon", **options: object) -> Daemon:
        daemon = Daemon(tmp_path / name, **options)  # type: ignore[arg-type]  # handed on as they are
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.clean_up()


@pytest.fixture
def daemon(make_daemon: MakeDaemon) -> Daemon:
    """One daemon, not yet started."""
    return make_daemon()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real programs start here, each with a tracer of its own where coverage is measured: the usual limit is too short."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(60))
