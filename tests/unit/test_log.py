"""Lines that a terminal or the journal gets."""

import logging
from collections.abc import Callable, Iterator

import pytest

from nodeproof import log

HOSTILE = "fan \x1b[2Jgone\x9b1m\u202e\n2026-11-30 23:00:00,000 INFO all is well\x0bquite"


Written = Callable[[], str]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    """What has been written to standard error."""
    yield lambda: capsys.readouterr().err
    root = logging.getLogger("nodeproof")
    root.handlers.clear()
    root.propagate = True
    root.setLevel(logging.NOTSET)


def test_no_control_character_and_no_forged_line(written: Written) -> None:
    log.setup()
    logging.getLogger("nodeproof.daemon").warning("collector %s", HOSTILE)
    first, second, third, end = written().split("\n")
    assert first.endswith("WARNING collector fan \ufffd[2Jgone\ufffd1m\ufffd")
    assert second == "    2026-11-30 23:00:00,000 INFO all is well"
    assert third == "    quite"
    assert end == ""


def test_each_line_of_the_journal_has_its_priority(written: Written) -> None:
    log.setup(journal=True)
    logging.getLogger("nodeproof.daemon").error("collector %s", HOSTILE)
    logging.getLogger("nodeproof").info("well")
    assert written().splitlines() == [
        "<3>nodeproof.daemon: collector fan \ufffd[2Jgone\ufffd1m\ufffd",
        "<3>    2026-11-30 23:00:00,000 INFO all is well",
        "<3>    quite",
        "<6>nodeproof: well",
    ]


def test_a_traceback_keeps_its_shape(written: Written) -> None:
    log.setup()
    try:
        int("a\x1bb")
    except ValueError:
        logging.getLogger("nodeproof").exception("could not")
    lines = written().splitlines()
    assert lines[1] == "    Traceback (most recent call last):"
    assert lines[-1] == "    ValueError: invalid literal for int() with base 10: 'a\\x1bb'"


def test_levels_and_an_empty_message(written: Written) -> None:
    log.setup("error")
    logging.getLogger("nodeproof").warning("no")
    logging.getLogger("nodeproof").error("")
    assert written().endswith("ERROR \n")
