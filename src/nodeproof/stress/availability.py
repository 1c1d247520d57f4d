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
    return _by_preflight(settings, name, profile, enabled=enabled)


def _by_preflight(settings: StressSettings, name: str, profile: ExecutionProfile, *, enabled: bool) -> Availability:
    status, text = profile.preflight.status, profile.preflight.message
    if status is CheckStatus.UNSUPPORTED and settings.configured:
        status = CheckStatus.FAIL  # whoever switched it on expects the hardware: that it cannot be seen is a fault then
    elif status is CheckStatus.FAIL:
        text = _failures(profile)
    elif status is CheckStatus.PASS:
        text = "precheck passed"
    available = status in {CheckStatus.PASS, CheckStatus.WARN}
    return Availability(name, enabled, available=available, message=text, status=status, profile=profile)


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
    """The reference's list of what failed, as far as the roll-up does not say it with its remedy, and the roll-up."""
    rolled_up = profile.preflight.message
    parts = [f"{asset.name} ({asset.path}): {asset.message}" for asset in profile.assets if asset.status is CheckStatus.FAIL]
    if profile.mpi.status is CheckStatus.FAIL:
        parts.append(f"MPI: {profile.mpi.message}")
    return "; ".join([*(part for part in parts if part not in rolled_up), rolled_up])
