"""What command line and page show of all items at once."""

import sys

from nodeproof.model.job import BenchmarkView, CheckStatus, ConfigView, DoctorItem, DoctorView, doctor_status
from nodeproof.stress.facade import StressFacade
from nodeproof.stress.settings import BENCHMARKS
from nodeproof.stress.sizing import Plan

__all__ = ["config_view", "doctor_view"]


def doctor_view(manager: StressFacade, plan: Plan = Plan.STANDARD) -> DoctorView:
    """Every item that there is, sorted by name (stress.md 5.4)."""
    settings = manager.config
    items = []
    for name in _names(manager):
        answer = manager.availability(name, plan)
        status = answer.status if answer.enabled else CheckStatus.UNSUPPORTED
        items.append(
            DoctorItem(
                name=name,
                enabled=answer.enabled,
                available=answer.available,
                status=status,
                message=answer.message,
                profile=answer.profile,
                profile_error=answer.profile_error,
            )
        )
    return DoctorView(
        status=doctor_status(items, feature_enabled=settings.enabled),
        feature_enabled=settings.enabled,
        web_enabled=settings.web_enabled,
        script_path=settings.script_path,
        report_path=settings.report_path,
        benchmarks=items,
    )


def config_view(manager: StressFacade, *, loopback: bool, operator: bool = False) -> ConfigView:
    """Answer to ``GET /api/stress/config`` (stress.md 6.1).

    ``loopback``: only this machine reaches the page; ``operator``: whoever asks proved that they may start jobs from elsewhere.
    """
    settings = manager.config
    views = []
    for name in _names(manager):
        answer = manager.availability(name)
        item = settings.benchmarks.get(name)
        views.append(
            BenchmarkView(
                name=name,
                enabled=answer.enabled,
                available=answer.available,
                message=answer.message,
                timeout_seconds=int(item.timeout_s) if item is not None else 0,
                profile=answer.profile,
            )
        )
    linux = sys.platform.startswith("linux")
    shared = bool(settings.report_path)
    return ConfigView(
        benchmarks=views,
        default_benchmarks=list(settings.default_benchmarks),
        enabled=linux and settings.enabled and settings.web_enabled and (loopback or operator) and shared,
        feature_enabled=settings.enabled,
        loopback=loopback,
        platform=sys.platform,
        shared_report=shared,
        web_enabled=settings.web_enabled,
    )


def _names(manager: StressFacade) -> list[str]:
    return sorted({*BENCHMARKS, *manager.config.benchmarks})
