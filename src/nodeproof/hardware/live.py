"""The newest look, for a strip that people watch while a run goes on."""

from nodeproof.errors import NoData
from nodeproof.hardware.facts import Facts
from nodeproof.hardware.looks import Look
from nodeproof.hardware.recorder import Recorder
from nodeproof.model.hardware import LiveSample

__all__ = ["live_sample"]

_UNCORRECTED = ("edac_uncorrected", "mce_uncorrected", "aer_uncorrected", "accelerator_uncorrected")
_TOP = 3


def live_sample(recorder: Recorder, facts: Facts, begin: Look | None) -> LiveSample | None:
    """What the newest look showed, and what came since the one before it and since the run began (``begin``)."""
    last, before_s = recorder.last, recorder.before_last_s
    if last is None:
        return None
    now_s = last.at.mono_s
    run_s = begin.at.mono_s if begin is not None else now_s
    window_s = now_s - before_s if before_s is not None else 0.0
    recent = facts.window(now_s if before_s is None else before_s, now_s, run_s)
    since = facts.window(run_s, now_s, run_s)
    memory = recorder.memory
    surveys = [answer for _, answer in last.surveys or () if not isinstance(answer, NoData)]
    users = [] if last.processes is None or isinstance(last.processes, NoData) else last.processes.top[:_TOP]
    sensors = [] if recorder.temperatures is None else recorder.temperatures

    def share(name: str) -> float | None:
        fact = recent.get(name)
        return None if fact is None else fact.value

    def count(name: str) -> int | None:
        fact = since.get(name)
        return None if fact is None or fact.value is None else int(fact.value)

    errors = [count(name) for name in _UNCORRECTED]
    throttled = share("throttle_share")
    return LiveSample(
        at=last.at.wall_s,
        mono_s=now_s,
        window_s=window_s or None,
        busy_share=share("busy_share"),
        own_share=share("own_share"),
        foreign_share=share("foreign_share"),
        foreign_top=[f"{user.pid} {user.name} {user.used_s / window_s:.1%}" for user in users] if window_s else [],
        steal_share=share("steal_share"),
        busy_mhz=facts.mean_mhz(now_s if before_s is None else before_s, now_s),
        busy_mhz_ratio=share("busy_mhz_ratio"),
        throttle_share=None if throttled is None else min(1.0, throttled),
        throttle_events=count("throttle_events"),
        cpu_temp_c=max((entry.value_c for entry in sensors if entry.kind == "cpu" and entry.value_c is not None), default=None),
        chassis_temp_c=max(
            (entry.value_c for entry in sensors if entry.kind == "chassis" and entry.value_c is not None), default=None
        ),
        critical=[entry.name for entry in sensors if entry.is_critical()],
        mem_available_kb=None if memory is None else memory.available_kb,
        memory_stall_share=share("memory_stall_share"),
        swap_in_pages=count("swap_in_pages"),
        uncorrected_errors=None if all(entry is None for entry in errors) else sum(entry or 0 for entry in errors),
        devices=[device for survey in surveys for device in survey.devices],
    )
