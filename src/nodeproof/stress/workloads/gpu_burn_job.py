"""The ``gpu_burn`` run: a process for each device, watched by one that touches no device itself.

A device passes when its process reported, and reported no error. One that died, hung or was asked for and is not there is a
failure with its name.
"""

import argparse
import multiprocessing
import time
from multiprocessing import connection
from typing import Any, Final

from nodeproof.stress.workloads.burn_device import DeviceFacts
from nodeproof.stress.workloads.burn_plan import BurnPlan, plan_of
from nodeproof.stress.workloads.burn_watch import DeviceWatch
from nodeproof.stress.workloads.burn_worker import list_devices, work
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.launch import CannotRunError

__all__ = ["run"]

_LOOK_S: Final = 1.0
_LIST_S: Final = 120.0
_GRACE_S: Final = 5.0


class _Worker:
    """One device's process and what it said."""

    def __init__(self, context: Any, device: str, options: argparse.Namespace, plan: BurnPlan) -> None:  # noqa: ANN401 - a context
        self.device = device
        self.phase, self.done, self.tflops = "start", 0.0, 0.0
        self.result: dict[str, Any] | None = None
        self.cause = ""
        self.heard_s = time.monotonic()
        self.pipe, far = context.Pipe(duplex=False)
        rest = {"inject": options.inject, "size": options.size, "memory": options.mib * 2**20 if options.mib else None}
        self.process = context.Process(target=work, args=(options.driver, device, plan, rest, far), daemon=True, name=device)
        self.process.start()
        far.close()
        self.over = False

    def hear(self) -> None:
        """Take in what it has said."""
        try:
            while self.pipe.poll():
                self._take(self.pipe.recv())
        except (EOFError, OSError):
            self.over = True
            self.process.join(_GRACE_S)
            if self.result is None and not self.cause:
                self.cause = f"its process ended without a result (exit status {self.process.exitcode})"

    def _take(self, message: dict[str, Any]) -> None:
        self.heard_s = time.monotonic()
        self.phase = message.get("phase", self.phase)
        self.done = message.get("done", self.done)
        self.tflops = message.get("tflops", self.tflops)
        self.result = message.get("result", self.result)
        self.cause = message.get("died", self.cause)

    def give_up(self, silence_s: float) -> None:
        """End it: it has said nothing for too long."""
        self.cause = f"it gave no sign of life for {silence_s:.0f} s in phase {self.phase}"
        self.process.kill()
        self.over = True


def run(options: argparse.Namespace, console: Console) -> None:
    """Burn every device that was asked for. Raises CannotRunError when there is none."""
    context = multiprocessing.get_context("spawn")
    devices, version = _devices(context, options)
    wanted = _wanted(devices, options.devices)
    plan = plan_of(options.plan, options.seconds, tuple(options.precisions))
    console.line("gpu_burn, nodeproof's own implementation")
    console.line(f"torch {version}; devices {', '.join(wanted)}")
    there = {facts.device: facts for facts in devices}
    watch = DeviceWatch([facts for facts in devices if facts.device in wanted])
    workers = [_Worker(context, device, options, plan) for device in wanted if device in there]
    _follow(workers, watch, console, options.silence)
    watch.close()
    _tell(console, options, wanted, workers, watch)


def _devices(context: Any, options: argparse.Namespace) -> tuple[list[DeviceFacts], str]:  # noqa: ANN401 - a context
    """Every device of the kind, told by a process of its own. Raises CannotRunError."""
    near, far = context.Pipe(duplex=False)
    child = context.Process(target=list_devices, args=(options.driver, options.kind, far), daemon=True)
    child.start()
    far.close()
    try:
        answer = near.recv() if near.poll(_LIST_S) else {"died": f"no answer in {_LIST_S:.0f} s"}
    except EOFError:
        child.join(_GRACE_S)
        answer = {"died": f"the process ended (exit status {child.exitcode})"}
    finally:
        child.kill()
        near.close()
    if "died" in answer:
        raise CannotRunError(
            f"devices cannot be listed: {answer['died']}; torch for this accelerator: pip install 'nodeproof[gpu]'"
        )
    devices = [DeviceFacts(*facts) for facts in answer["devices"]]
    if not devices:
        raise CannotRunError(f"torch {answer['version']} sees no accelerator of kind {options.kind}")
    return devices, str(answer["version"])


def _wanted(devices: list[DeviceFacts], asked: str | None) -> list[str]:
    """Names of the devices to burn, those among them that are not there, too."""
    if asked is None:
        return [facts.device for facts in devices]
    kind = devices[0].device.partition(":")[0]
    return [number if ":" in number else f"{kind}:{number}" for number in dict.fromkeys(asked.split(","))]


def _follow(workers: list[_Worker], watch: DeviceWatch, console: Console, silence_s: float) -> None:
    beats = 0
    while any(not worker.over for worker in workers):
        alive = [worker for worker in workers if not worker.over]
        connection.wait([worker.pipe for worker in alive], _LOOK_S)
        before = sum(worker.done for worker in workers)
        for worker in alive:
            worker.hear()
            if not worker.over and time.monotonic() - worker.heard_s > silence_s:
                worker.give_up(silence_s)
        watch.look()
        if sum(worker.done for worker in workers) != before:
            beats += 1
            phases = sorted({worker.phase for worker in alive})
            console.beat("+".join(phases), beats, unit="looks")
    for worker in workers:
        worker.pipe.close()


def _tell(console: Console, options: argparse.Namespace, wanted: list[str], workers: list[_Worker], watch: DeviceWatch) -> None:
    """Every device's verdict, and the one of all."""
    by_name = {worker.device: worker for worker in workers}
    rows, failures = [], []
    for device in wanted:
        worker = by_name.get(device)
        told = worker.result if worker is not None else None
        row = {"device": device, **(told or {}), **watch.of(device)}
        if told is None:
            cause = worker.cause if worker is not None else "there is no such device"
            failures.append(f"{device}: {cause}")
            row |= {"verdict": "fail", "cause": cause}
        elif told["errors"]:
            failures += told["faults"] or [f"{device}: {told['errors']} errors"]
            row["verdict"] = "fail"
        else:
            row["verdict"] = "pass"
        rows.append(row)
        console.line(_line(row))
    reported = [row for row in rows if "tflops" in row]
    rates: dict[str, float] = {}
    for row in reported:
        for precision, rate in row["tflops"].items():
            rates[f"{precision}_tflops_min"] = min(rate, rates.get(f"{precision}_tflops_min", rate))
    console.result(
        {
            "passed": not failures,
            "failures": failures,
            "plan": options.plan,
            "devices_requested": len(wanted),
            "devices_reported": len(reported),
            "errors": sum(row["errors"] for row in reported),
            "memory_tested_bytes": sum(row["memory_bytes"] for row in reported),
            **rates,
            "devices": rows,
        }
    )


def _line(row: dict[str, Any]) -> str:
    rates = ", ".join(f"{precision} {rate:g} TFLOP/s" for precision, rate in row.get("tflops", {}).items())
    heat = f", {row['max_temp_c']:g} C" if row.get("max_temp_c") is not None else ""
    slowed = ", ".join(f"{reason} {seconds:g} s" for reason, seconds in row.get("throttled_s", {}).items() if seconds)
    return f"{row['device']}: {row['verdict']} {rates}{heat}" + (f", slowed by {slowed}" if slowed else "")
