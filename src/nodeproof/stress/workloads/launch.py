"""How every workload starts: its arguments, the environment of the libraries, and what is lacking said clearly."""

import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from nodeproof.stress.workloads.console import Console

__all__ = ["PLANS", "CannotRunError", "Configure", "main", "positive", "prepare_environment"]

PLANS: Final = ("quick", "standard", "soak")
_LIBRARIES: Final = ("numpy", "scipy", "numba")
_UNSET: Final = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_MAIN_FREE", "GOTOBLAS_MAIN_FREE")
"""Settings that would have OpenBLAS run another processor's code than this one's."""
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""The workloads bring their own threads, each calling BLAS for itself."""
_KEPT_FOLDERS = 3
_OOM_SCORE = 900
_EXIT_CANNOT_RUN = 69
_EXIT_FAILED = 70

Configure = Callable[[argparse.ArgumentParser], None]


class CannotRunError(Exception):
    """This machine lacks what the workload needs; the message says what and what helps."""


def positive(text: str) -> int:
    """An argument that counts something: a whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def main(
    name: str,
    description: str,
    configure: Configure,
    job: str,
    arguments: Sequence[str] | None = None,
    *,
    libraries: Sequence[str] = _LIBRARIES,
    extra: str = "stress",
) -> int:
    """Parse the arguments, set the environment, then load the module ``job`` and call its ``run(options, console)``.

    ``libraries`` must be installed; ``extra`` brings them. The environment counts when numpy and numba are loaded, so nothing
    that loads them may be imported before this.
    """
    parser = argparse.ArgumentParser(prog=f"python -m nodeproof.stress.workloads.{name}", description=description)
    parser.add_argument("--plan", choices=PLANS, default="quick", help="how much to run (default: quick)")
    parser.add_argument("--seconds", type=positive, help="run for about so long instead of the plan's time")
    parser.add_argument("--threads", type=positive, help="CPUs to use, at most those allowed (default: all allowed)")
    parser.add_argument("--json", action="store_true", help="write heartbeats and the result only, as JSON lines")
    configure(parser)
    options = parser.parse_args(arguments)
    lacking = [library for library in libraries if importlib.util.find_spec(library) is None]
    if lacking:
        return _refuse(
            name, f"{', '.join(lacking)} not installed; the workloads need the extra: pip install 'nodeproof[{extra}]'"
        )
    console = Console(name, json_only=options.json)
    _offer_to_die_first()
    try:
        prepare_environment()
        console.beat("start", 1, 1)
        importlib.import_module(f"nodeproof.stress.workloads.{job}").run(options, console)
    except CannotRunError as error:
        return _refuse(name, str(error))
    except MemoryError as error:
        return _refuse(name, f"out of memory: {error}")
    except BrokenPipeError:
        return _leave(_EXIT_FAILED)
    except Exception:  # noqa: BLE001 - the last one to see it
        traceback.print_exc()
        return _leave(_EXIT_FAILED)
    return 0


def _refuse(name: str, reason: str) -> int:
    sys.stderr.write(f"nodeproof {name}: {reason}\n")
    return _EXIT_CANNOT_RUN


def _leave(status: int) -> int:
    """End now: threads of compiled work may be waiting for one that failed, and the interpreter would wait for them."""
    sys.stderr.flush()
    os._exit(status)


def _offer_to_die_first() -> None:
    """When memory runs out the kernel is to end this program, not one that the machine is there for."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(_OOM_SCORE))


def prepare_environment() -> None:
    """BLAS runs this processor's own code on the calling thread; compiled kernels are kept for the next start."""
    for variable in _UNSET:
        os.environ.pop(variable, None)
    for variable in _ONE_THREAD:
        os.environ[variable] = "1"
    os.environ["NUMBA_CACHE_DIR"] = _cache_folder()


def _cache_folder() -> str:
    """Where compiled kernels are kept, one folder for each state of their sources. Raises CannotRunError when there is no place.

    numba renews what it kept when the file of a function has changed, but not when a function that it calls has. What lies
    there is loaded as code: a folder that others may write to is passed over.
    """
    asked = os.environ.get("NODEPROOF_KERNEL_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places = [asked] if asked else [os.path.join(home, "nodeproof"), f"{tempfile.gettempdir()}/nodeproof-{os.getuid()}"]
    for place in places:
        folder = os.path.join(place, f"kernels-{_sources_digest()}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if all(_is_ours(path) for path in (place, folder)) and os.access(folder, os.W_OK | os.X_OK):
                _forget_old(place, folder)
                return folder
        except OSError:
            continue
    raise CannotRunError(
        f"no folder of our own to keep compiled kernels in ({', '.join(places)}); name one by NODEPROOF_KERNEL_CACHE"
    )


def _forget_old(place: str, current: str) -> None:
    """Of the kernels of other states of the sources keep the newest few."""
    others = [
        path
        for path in (os.path.join(place, name) for name in os.listdir(place) if name.startswith("kernels-"))
        if path != current
    ]
    for path in sorted(others, key=os.path.getmtime)[:-_KEPT_FOLDERS]:
        shutil.rmtree(path, ignore_errors=True)


def _is_ours(folder: str) -> bool:
    facts = os.stat(folder)
    return facts.st_uid == os.getuid() and not facts.st_mode & 0o022


def _sources_digest() -> str:
    """Over the sources of this package."""
    digest = hashlib.sha256()
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(here)):
        if name.endswith(".py"):
            with open(os.path.join(here, name), "rb") as file:
                digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()[:16]
