"""Whether an item can be run now, and why not (stress.md 4.9, in its order)."""

import os
import stat
import sys
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.model.job import CheckStatus, ExecutionProfile
from nodeproof.stress.adapters.base import DescribeError
from nodeproof.stress.settings import BENCHMARKS, StressSettings

__all__ = ["Availability", "check", "path_fault"]


class Availability(NamedTuple):
    """Answer for one item."""

    name: str
    enabled: bool
    available: bool
    message: str
    status: CheckStatus
    profile: ExecutionProfile | None = None
    profile_error: str = ""


def check(settings: StressSettings, name: str, describe: Callable[[], ExecutionProfile]) -> Availability:
    """Look in the reference's order; an item that is switched off is never described."""
    enabled = settings.enabled and name in settings.benchmarks and settings.benchmarks[name].enabled
    fault = _switched_off(settings, name)
    if fault:
        return Availability(name, enabled, available=False, message=fault, status=CheckStatus.UNSUPPORTED)
    fault = path_fault(settings, name)
    if fault:
        return Availability(name, enabled, available=False, message=fault, status=CheckStatus.FAIL)
    try:
        profile = describe()
    except DescribeError as error:
        text = str(error)
        return Availability(name, enabled, available=False, message=text, status=CheckStatus.FAIL, profile_error=text)
    if profile.preflight.status is CheckStatus.FAIL:
        return Availability(name, enabled, available=False, message=_failures(profile), status=CheckStatus.FAIL, profile=profile)
    if profile.preflight.status is CheckStatus.WARN:
        text = profile.preflight.message
        return Availability(name, enabled, available=True, message=text, status=CheckStatus.WARN, profile=profile)
    return Availability(name, enabled, available=True, message="precheck passed", status=CheckStatus.PASS, profile=profile)


def _switched_off(settings: StressSettings, name: str) -> str:
    if not sys.platform.startswith("linux"):
        return "stress jobs run on Linux only"
    if not settings.enabled:
        return "stress jobs are disabled (stress.enabled)"
    if name not in BENCHMARKS:
        return f"{name} is no stress item"
    item = settings.benchmarks.get(name)
    if item is None:
        return f"{name} is not configured (stress.benchmarks.{name})"
    return "" if item.enabled else f"{name} is disabled (stress.benchmarks.{name}.enabled)"


def path_fault(settings: StressSettings, name: str) -> str:
    """What is wrong with script and result directory of an item; empty when nothing is."""
    item = settings.benchmarks[name]
    if item.adapter == "script":
        try:
            if not stat.S_ISREG(os.stat(settings.script_path).st_mode):
                return f"stress.script_path {settings.script_path} is no regular file"
        except OSError as error:
            return f"stress.script_path {settings.script_path}: {os.strerror(error.errno or 0)}"
    if name == "hpcg" and item.adapter == "script":
        if not item.result_dir:
            return "stress.benchmarks.hpcg.result_dir is not set; HPCG leaves its result in a file there"
        if not os.path.isdir(item.result_dir):
            return f"stress.benchmarks.hpcg.result_dir {item.result_dir} is no directory"
    return ""


def _failures(profile: ExecutionProfile) -> str:
    """The reference's list of what failed, with the roll-up where it says more."""
    parts = [f"{asset.name} ({asset.path}): {asset.message}" for asset in profile.assets if asset.status is CheckStatus.FAIL]
    if profile.mpi.status is CheckStatus.FAIL:
        parts.append(f"MPI: {profile.mpi.message}")
    return "; ".join([*parts, profile.preflight.message])
