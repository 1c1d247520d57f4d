"""Every error names thing, place and remedy."""

import pytest

from nodeproof import errors
from nodeproof.errors import (
    Absence,
    AddressInUseError,
    CommandError,
    CommandFailure,
    ConfigError,
    NoData,
    NodeproofError,
    ParseError,
    SnapshotError,
    UsageError,
    WriteError,
)


def test_all_errors_have_one_root() -> None:
    for error in (UsageError, ConfigError, ParseError, NoData, CommandError, SnapshotError, WriteError, AddressInUseError):
        assert issubclass(error, NodeproofError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConfigError("collectors.cpu", "is no mapping"), "collectors.cpu: is no mapping"),
        (
            ConfigError("a.b", "is negative", source="/etc/x.yaml", remedy="write 3s"),
            "/etc/x.yaml: a.b: is negative (write 3s)",
        ),
        (ConfigError("", "is empty", source="/etc/x.yaml"), "/etc/x.yaml: is empty"),
        (ParseError("/proc/stat", 3, "cpuX", "a number"), "/proc/stat, line 3: found 'cpuX', expected a number"),
        (ParseError("/proc/stat", 0, "", "a line cpu"), "/proc/stat: found '', expected a line cpu"),
        (NoData(Absence.NO_PERMISSION, "needs root", remedy="sudo"), "no_permission: needs root"),
        (CommandError("smartctl", CommandFailure.TIMED_OUT, "no answer in 5 s"), "smartctl: no answer in 5 s"),
        (WriteError("/var/x", "no space left"), "/var/x: no space left"),
        (WriteError("/var/x", "no space left", remedy="free some", code=28), "/var/x: no space left; free some"),
        (AddressInUseError("127.0.0.1:19320", "pid 7", "stop it"), "127.0.0.1:19320 is already in use by pid 7; stop it"),
    ],
)
def test_messages(error: NodeproofError, text: str) -> None:
    assert str(error) == text


def test_what_an_error_is_about_can_be_asked() -> None:
    config = ConfigError("a.b", "is negative", source="f", remedy="r")
    assert (config.path, config.problem, config.source, config.remedy) == ("a.b", "is negative", "f", "r")
    parse = ParseError("f", 2, "x", "y")
    assert (parse.source, parse.line_no, parse.item, parse.expected) == ("f", 2, "x", "y")
    absent = NoData(Absence.STALE, "old", remedy="wait")
    assert (absent.state, absent.reason, absent.remedy) == (Absence.STALE, "old", "wait")
    command = CommandError("p", CommandFailure.STUCK, "d")
    assert (command.program, command.failure, command.detail) == ("p", "stuck", "d")
    unwritten = WriteError("p", "r", remedy="m", code=28)
    assert (unwritten.path, unwritten.reason, unwritten.remedy, unwritten.code) == ("p", "r", "m", 28)
    taken = AddressInUseError("a", "h", "r")
    assert (taken.address, taken.holder) == ("a", "h")


def test_a_huge_item_is_cut_in_the_message() -> None:
    error = ParseError("f", 1, "x" * 65536, "y")
    assert len(str(error)) < 200
    assert len(error.item) == 65536


def test_states_of_absence_are_words_of_the_wire() -> None:
    assert [one.value for one in Absence] == ["unknown", "not_applicable", "unsupported", "no_permission", "read_error", "stale"]


def test_every_error_is_exported() -> None:
    defined = {name for name, thing in vars(errors).items() if isinstance(thing, type) and thing.__module__ == errors.__name__}
    assert defined == set(errors.__all__)
