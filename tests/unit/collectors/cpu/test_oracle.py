"""This very machine, read by us and by psutil."""

import os

import psutil
import pytest

from nodeproof.collectors.cpu.collector import create
from nodeproof.host.machine import Machine


class _Some:
    def wants(self, component: str, name: str) -> bool:
        return component == "cpu" and name in {"idle_time", "system_time", "online_core_num", "load_average", "allowed_core_num"}


def test_this_machine_as_psutil_sees_it() -> None:
    machine = Machine.here()
    before = psutil.cpu_times()
    batch = create(machine, _Some()).collect()
    after = psutil.cpu_times()
    machine.close()
    found = {(metric.name, (metric.labels or {}).get("core", "")): metric.value for metric in batch.metrics}
    assert before.idle <= found["idle_time", "total"] / 100 <= after.idle
    assert before.system <= found["system_time", "total"] / 100 <= after.system
    assert found["online_core_num", ""] == psutil.cpu_count()
    assert found["allowed_core_num", ""] == len(os.sched_getaffinity(0))
    loads = [metric.value for metric in batch.metrics if metric.name == "load_average"]
    assert loads == pytest.approx(os.getloadavg(), abs=0.02)
