"""What may have become of a daemon; apart from the structs of its files, so that ``check`` need not load those."""

from enum import StrEnum

__all__ = ["DaemonVerdict"]


class DaemonVerdict(StrEnum):
    """What has become of the daemon of a snapshot directory."""

    RUNNING = "running"
    STARTING = "starting"
    """A daemon holds the directory and has written nothing yet: what lies there is its predecessor's."""
    FROZEN = "frozen"
    """A daemon holds the directory and has not written for too long: stopped by a signal, starved, or its disk is full."""
    STOPPED = "stopped"
    """It was stopped in good order."""
    DEAD = "dead"
    """It ended without saying so: killed, crashed, or the machine went down."""
    ABSENT = "absent"
    """No daemon has written here."""
    UNKNOWN = "unknown"
    """It could not be told: no permission, or an unreadable file."""
