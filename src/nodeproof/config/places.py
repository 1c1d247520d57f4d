"""Where the configuration file is looked for, and where directories are that it does not name.

Free of structs: who only needs a directory (``check``) loads nothing else.
"""

from collections.abc import Callable, Mapping

from nodeproof.errors import ConfigError

__all__ = ["ENVIRONMENT", "default_directories", "find", "state_directory"]

ENVIRONMENT = {
    "NODEPROOF_CONFIG": "configuration file",
    "CATMONITOR_CONFIG": "configuration file, when NODEPROOF_CONFIG is not set",
    "NODEPROOF_DATA_DIR": "default of storage.data_dir, and the folder of the other default directories",
    "CATMONITOR_DATA_DIR": "the same, when NODEPROOF_DATA_DIR is not set",
    "XDG_STATE_HOME": "default directories lie in its folder nodeproof; ~/.local/state when not set",
}
"""Variables that the configuration looks at."""

_DEFAULT_PATHS = ("/etc/nodeproof/nodeproof.yaml", "/etc/catmonitor/catmonitor.yaml")


def find(explicit: str | None, environ: Mapping[str, str], exists: Callable[[str], bool]) -> str | None:
    """Path of the file to read: given, from the environment, or a default one that exists; None = built-in defaults."""
    named = explicit or environ.get("NODEPROOF_CONFIG") or environ.get("CATMONITOR_CONFIG")
    if named:
        return named
    return next((path for path in _DEFAULT_PATHS if exists(path)), None)


def default_directories(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What the configuration's directories are where it does not name them, by section and key.

    Raises ConfigError for a variable that names no absolute path; of XDG's own such a one counts as not set, as its rules say.
    """
    beside = state_directory(environ)
    return {
        "storage": {"data_dir": _data_home(environ) or f"{beside}/data"},
        "snapshot": {"dir": f"{beside}/snapshot"},
        "straggler_output": {"data_dir": f"{beside}/straggler"},
    }


def state_directory(environ: Mapping[str, str]) -> str:
    """The folder of all directories that the configuration does not name. Raises ConfigError as :func:`default_directories`."""
    state_home = environ.get("XDG_STATE_HOME", "")
    if not state_home.startswith("/"):
        state_home = f"{environ.get('HOME', '/root')}/.local/state"
    return _data_home(environ) or f"{state_home}/nodeproof"


def _data_home(environ: Mapping[str, str]) -> str:
    return _directory("NODEPROOF_DATA_DIR", environ) or _directory("CATMONITOR_DATA_DIR", environ)


def _directory(name: str, environ: Mapping[str, str]) -> str:
    path = environ.get(name, "")
    if path and not path.startswith("/"):
        raise ConfigError(name, f"{path!r} is no absolute path", source="environment")
    return path
