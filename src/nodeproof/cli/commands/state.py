"""``nodeproof state``: whether everything that is kept can be read, mending what cannot, pruning, and the form of the whole."""

import argparse
import math
import os
import time

from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.places import with_home
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.config.places import state_directory
from nodeproof.config.schema import Config
from nodeproof.errors import NodeproofError, UsageError
from nodeproof.host.append import lower_priority
from nodeproof.host.locks import probe_lock
from nodeproof.host.users import user_name
from nodeproof.operate.state.problems import Problem, Store
from nodeproof.operate.state.stores import stores_of
from nodeproof.operate.state.version import SCHEMA, change_form, enter_state
from nodeproof.runs.store import RunStore
from nodeproof.stress.settings import StressSettings

__all__ = ["run"]

_BATCH = 20


def run(options: argparse.Namespace) -> int:
    """Exit 0 when all is well, or was mended; 1 when something is left that is not."""
    if options.action != "check":
        _refuse_another_owner(options)
    actions = {"check": _check, "repair": _repair, "prune": _prune, "upgrade": _upgrade, "downgrade": _downgrade}
    return actions[options.action](options)


def _refuse_another_owner(options: argparse.Namespace) -> None:
    """Raises UsageError for root in the directory of a service: what root made there that service could not use."""
    home = _home(options)
    try:
        owner = os.stat(home).st_uid
    except OSError:
        return
    if os.geteuid() == 0 and owner != 0:
        name = user_name(owner).partition(" ")[0]
        raise UsageError(
            f"{home} belongs to {user_name(owner)}, who could not use what root makes there; run it as that user:"
            f" runuser -u {name} -- env NODEPROOF_DATA_DIR={home} nodeproof state {options.action}"
        )


def _home(options: argparse.Namespace) -> str:
    return state_directory(with_home(options.environ))


def _stores(options: argparse.Namespace) -> tuple[Config, list[Store]]:
    config = load_config(options)
    settings = StressSettings.of(config, dict(with_home(options.environ)))
    return config, stores_of(config, settings.home, settings.report_path)


def _check(options: argparse.Namespace) -> int:
    _, stores = _stores(options)
    found = [(store, problem) for store in stores for problem in store.problems(deep=options.deep)]
    _tell(options, stores, [(store, problem, problem.would or "nothing: a person must look") for store, problem in found])
    return int(bool(found))


def _repair(options: argparse.Namespace) -> int:
    config, stores = _stores(options)
    daemon = config.snapshot.enabled and bool(probe_lock(config.snapshot.dir).held)
    form, *others = stores
    told, left = _mend_all([form], deep=options.deep, daemon=daemon)
    lease = enter_state(_home(options))
    try:
        more, more_left = _mend_all(others, deep=options.deep, daemon=daemon)
    finally:
        lease.close()
    _tell(options, stores, told + more)
    return int(bool(left + more_left))


def _mend_all(stores: list[Store], *, deep: bool, daemon: bool) -> tuple[list[tuple[Store, Problem, str]], int]:
    """What was found and done, and how much of it is left as it is."""
    told, left = [], 0
    for store in stores:
        for problem in list(store.problems(deep=deep)):
            done, mended = _mend(problem, daemon=daemon)
            told.append((store, problem, done))
            left += not mended
    return told, left


def _mend(problem: Problem, *, daemon: bool) -> tuple[str, bool]:
    """What was done, and whether it is mended."""
    if problem.mend is None:
        return "nothing: a person must look", False
    if problem.live and daemon:
        return "nothing: the daemon writes there; stop it, then repair", False
    try:
        return problem.mend(), True
    except (NodeproofError, OSError) as error:
        return f"it could not be mended: {error}", False


def _tell(options: argparse.Namespace, stores: list[Store], told: list[tuple[Store, Problem, str]]) -> None:
    if options.output == "json":
        problems = [
            {"store": store.name, "path": problem.path, "what": problem.what, "repair": done} for store, problem, done in told
        ]
        print_json({"examined": {store.name: store.examined for store in stores}, "problems": problems}, indent=2)
        return
    print_table(
        ("store", "examined", "problems", "where"),
        [(store.name, str(store.examined), str(sum(one is store for one, _, _ in told)), store.path) for store in stores],
        right=(1, 2),
    )
    for store, problem, done in told:
        print(printable_lines(f"\n{store.name}: {problem.path}\n    {problem.what}\n    repair: {done}"))


def _prune(options: argparse.Namespace) -> int:
    """Remove runs beyond the limits, so many a second, giving way to everybody."""
    if options.most < 1:
        raise UsageError(f"--most {options.most}: expected 1 or more")
    if not 0 < options.rate < math.inf:
        raise UsageError(f"--rate {options.rate:g}: expected more than 0")
    lease = enter_state(_home(options))
    store = RunStore(_home(options))
    lower_priority()
    removed, left = 0, options.most
    try:
        while left > 0:
            began = time.monotonic()
            count = store.prune(min(_BATCH, left))
            removed, left = removed + count, left - count
            if count < _BATCH:
                break
            time.sleep(max(0.0, count / options.rate - (time.monotonic() - began)))
    finally:
        lease.close()
    print(f"{removed} runs beyond the limits were removed")
    return 0


def _upgrade(options: argparse.Namespace) -> int:
    lease = enter_state(_home(options))
    lease.close()
    print(printable_lines(f"{_home(options)} has form {SCHEMA}; steps made: {', '.join(lease.did) or 'none were needed'}"))
    return 0


def _downgrade(options: argparse.Namespace) -> int:
    made = change_form(_home(options), options.to)
    print(printable_lines(f"{_home(options)} has form {options.to}; steps made: {', '.join(made) or 'none were needed'}"))
    return 0
