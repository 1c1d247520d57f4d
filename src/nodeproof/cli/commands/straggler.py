"""``nodeproof straggler``: which NPU of this node lags behind its peers, by the KPI files of the last days."""

import argparse
from collections import Counter
from typing import Any

from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.errors import UsageError
from nodeproof.health.straggler import StragglerState, StragglerVerdict, StragglerWatch
from nodeproof.sinks.kpi_reader import kpi_batches

__all__ = ["run"]

_MOST_DAYS = 3660
_EXIT = {StragglerState.NONE: 0, StragglerState.FOUND: 1, StragglerState.UNKNOWN: 3}


def run(options: argparse.Namespace) -> int:
    """Print the verdict at the end of the files, and how often each device was found before; exit 0 none, 1 found, 3 unknown.

    Raises UsageError.
    """
    if not 1 <= options.days <= _MOST_DAYS:
        raise UsageError(f"--days {options.days} is not within 1 and {_MOST_DAYS}")
    watch = StragglerWatch("npu")
    seen: Counter[str] = Counter()
    samples = 0
    for batch in kpi_batches(options.dir or load_config(options).straggler_output.data_dir, options.days):
        watch.take(batch)
        samples += 1
        seen.update({one.device for one in watch.verdict().stragglers})
    verdict = watch.verdict()
    if options.output == "json":
        print_json(_document(verdict, samples, seen))
    else:
        _print(verdict, samples, seen)
    return _EXIT[verdict.state]


def _document(verdict: StragglerVerdict, samples: int, seen: Counter[str]) -> dict[str, Any]:
    rows = [
        {
            "device": one.device,
            "metric": one.kind.metric,
            "value": one.value,
            "peers": one.peers,
            "robust_z": one.z,
            "windows": one.windows,
        }
        for one in verdict.stragglers
    ]
    return {
        "component": verdict.component,
        "state": verdict.state,
        "reason": verdict.reason,
        "devices": verdict.devices,
        "windows": verdict.windows,
        "samples": samples,
        "stragglers": rows,
        "samples_as_straggler": dict(seen),
    }


def _print(verdict: StragglerVerdict, samples: int, seen: Counter[str]) -> None:
    print(f"{verdict.state}: {printable(verdict.reason, 400)}")
    print(f"{samples} samples, {verdict.devices} devices, {verdict.windows} windows compared at the end")
    if verdict.stragglers:
        rows = [
            [one.device, one.kind.what, f"{one.value:g}", f"{one.peers:g}", f"{one.z:g}", str(one.windows)]
            for one in verdict.stragglers
        ]
        print_table(("Device", "Reading", "Own", "Peers", "Robust z", "Windows"), rows, right=(2, 3, 4, 5))
    for device, count in seen.most_common(8):
        print(f"{printable(device)} was found in {count} of {samples} samples")
