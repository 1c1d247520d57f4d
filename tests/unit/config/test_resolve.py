"""Where the configuration comes from, and the defaults."""

import pytest

from nodeproof.config.places import find
from nodeproof.config.resolve import defaults
from nodeproof.errors import ConfigError


def nothing(path: str) -> bool:
    del path
    return False


def test_order_of_the_places() -> None:
    both = {"NODEPROOF_CONFIG": "/n", "CATMONITOR_CONFIG": "/c"}
    assert find("/given", both, nothing) == "/given"
    assert find(None, both, nothing) == "/n"
    assert find(None, {"CATMONITOR_CONFIG": "/c"}, nothing) == "/c"
    assert find(None, {}, lambda path: path == "/etc/catmonitor/catmonitor.yaml") == "/etc/catmonitor/catmonitor.yaml"
    assert find(None, {}, lambda path: path.startswith("/etc/")) == "/etc/nodeproof/nodeproof.yaml"
    assert find(None, {}, nothing) is None


def test_default_directories_follow_the_environment() -> None:
    config = defaults({"XDG_STATE_HOME": "/s"})
    assert (config.storage.data_dir, config.snapshot.dir, config.straggler_output.data_dir) == (
        "/s/nodeproof/data",
        "/s/nodeproof/snapshot",
        "/s/nodeproof/straggler",
    )
    moved = defaults({"XDG_STATE_HOME": "/s", "CATMONITOR_DATA_DIR": "/d"})
    assert (moved.storage.data_dir, moved.snapshot.dir, moved.straggler_output.data_dir) == ("/d", "/d/snapshot", "/d/straggler")
    assert defaults({"NODEPROOF_DATA_DIR": "/n", "CATMONITOR_DATA_DIR": "/d"}).storage.data_dir == "/n"


def test_defaults_work_without_a_file() -> None:
    config = defaults({"HOME": "/home/u"})
    assert config.source == "built-in defaults"
    assert config.features == ("web", "dfee", "health")
    assert config.exporter.address == "127.0.0.1:19320"
    assert config.snapshot.enabled
    assert config.stress is None
    assert config.warnings == ()


def test_directories_that_are_not_absolute() -> None:
    """Of XDG's variable such a one counts as not set, as its specification says; ours is an error."""
    assert defaults({"XDG_STATE_HOME": "state", "HOME": "/home/a"}).snapshot.dir == "/home/a/.local/state/nodeproof/snapshot"
    with pytest.raises(ConfigError, match="NODEPROOF_DATA_DIR: 'data' is no absolute path"):
        defaults({"NODEPROOF_DATA_DIR": "data"})
