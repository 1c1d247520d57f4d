"""Answers of the web server as its types have them, for pages in states that a test machine cannot be brought into."""

import json
from typing import Any

import msgspec
from playwright.sync_api import Page, Route

from nodeproof.daemon.circumstances import Check, Standing
from nodeproof.daemon.diagnosis import Cause, NotApplicable
from nodeproof.errors import Absence
from nodeproof.model.hardware import DeviceState, LiveSample, ThrottleActive
from nodeproof.model.job import (
    AssetCheck,
    BenchmarkResult,
    BenchmarkView,
    CheckStatus,
    ConfigView,
    Correctness,
    Evidence,
    Execution,
    ExecutionProfile,
    MPICheck,
    Outcome,
    Performance,
    PreflightResult,
    ProfileParameter,
    Report,
    ResourceProfile,
    Status,
)
from nodeproof.model.live_job import LiveJob, LivePhase, LivePoint
from nodeproof.web.doctor_wire import DoctorReport
from nodeproof.web.stress_wire import Now, Trend, TrendPoint

__all__ = [
    "JOB",
    "Answers",
    "config",
    "doctor_output",
    "ended",
    "history",
    "live",
    "profile",
    "running",
    "stress_answers",
    "trends",
]

JOB = "0123456789abcdef"
STARTED = "2026-11-30T10:00:00+00:00"
ENDED = "2026-11-30T10:01:55+00:00"
HASH = "5f" * 32
IDENTITY = "ab" * 32


class Answers:
    """What the server says, by path; a list holds successive answers, the last of which stays. Keeps what was asked."""

    def __init__(self, bodies: dict[str, object]) -> None:
        self.bodies = bodies
        self.statuses: dict[str, tuple[int, dict[str, str]]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        """Method, path and body of each request that would change something."""

    def install(self, page: Page) -> None:
        """Answer for the server, where there is something to say."""
        page.route("**/api/**", self._answer)

    def _answer(self, route: Route) -> None:
        request = route.request
        path = "/" + request.url.split("/", 3)[3]
        if request.method == "POST":
            self.asked.append((request.method, path, (request.headers, json.loads(request.post_data or "null"))))
        key = path if path in self.bodies else path.split("?")[0]
        if request.method == "POST":
            key = f"POST {key}"
        if key not in self.bodies:
            route.fallback()
            return
        status, headers = self.statuses.get(key, (200, {}))
        body = msgspec.json.encode(self.bodies[key])
        route.fulfill(status=status, headers=headers, content_type="application/json", body=body)


def profile(name: str = "stream", *, warn: str = "") -> ExecutionProfile:
    """What would run."""
    return ExecutionProfile(
        protocol_version=1,
        benchmark=name,
        executor="builtin",
        parameters=[
            ProfileParameter("threads", "Threads", "64"),
            ProfileParameter("array_elements", "Elements an array", "80000000"),
        ],
        resources=ResourceProfile(0, 64, 64, 0, "80000000"),
        assets=[AssetCheck("interpreter", "/usr/bin/python3", "executable", True, CheckStatus.PASS, "Python 3.11.7", HASH)],
        mpi=MPICheck(
            required=False, implementation="none", executable_abi="none", status=CheckStatus.PASS, message="no MPI is used"
        ),
        preflight=PreflightResult(CheckStatus.WARN if warn else CheckStatus.PASS, warn or "all checks passed"),
        timeout_seconds=600,
        configuration_sha256=HASH,
    )


def config(**changes: object) -> ConfigView:
    """Two that can run, and one that cannot."""
    whole = ConfigView(
        benchmarks=[
            BenchmarkView(name="hpl", enabled=True, available=True, message="", timeout_seconds=3600, profile=profile("hpl")),
            BenchmarkView(
                name="npu_burn",
                enabled=True,
                available=False,
                message="no Ascend device answers: npu-smi is not installed",
                timeout_seconds=600,
            ),
            BenchmarkView(name="stream", enabled=True, available=True, message="", timeout_seconds=600, profile=profile()),
        ],
        default_benchmarks=["stream"],
        enabled=True,
        feature_enabled=True,
        loopback=True,
        platform="linux",
        shared_report=True,
        web_enabled=True,
    )
    return msgspec.structs.replace(whole, **changes)


def _outcome(*, correctness: Correctness = Correctness.VALIDATED, performance: Performance = Performance.IN_BAND) -> Outcome:
    return Outcome(
        execution=Execution.FINISHED,
        correctness=correctness,
        performance=performance,
        progress=True,
        reasons={
            "execution": "it ended by itself",
            "correctness": "all three arrays validate",
            "performance": "within 3 robust deviations of the median of 7 runs",
        },
        evidence=[Evidence("stdout", 29, "Triad:          180000.5     0.010384     0.005835     0.014259")],
    )


def ended(job_id: str = JOB, *, triad: float = 180000.5, started: str = STARTED) -> Report:
    """A job with each way of showing a result."""

    def item(name: str, values: dict[str, float], **more: Any) -> BenchmarkResult:
        plain: dict[str, Any] = {
            "status": Status.HEALTHY,
            "message": "all three arrays validate",
            "outcome": _outcome(),
            "details": {
                "hardware": {"validity": "valid", "concerns": []},
                "process_tree": {"empty": True, "evidence": ["no child is left"], "forced": False},
                "baseline": {"identity_sha256": IDENTITY, "samples": 7},
            },
            "run_id": "run-1796091746780972971",
            "output": "Triad: <b>180000.5</b>",
        }
        return BenchmarkResult(
            name=name,
            started_at=started,
            finished_at=ENDED,
            duration_ms=5212,
            source="stdout",
            values=values,
            profile=profile(name),
            **(plain | more),
        )

    return Report(
        job_id=job_id,
        initiator="cli",
        timestamp=ENDED,
        started_at=started,
        finished_at=ENDED,
        platform="linux",
        status=Status.UNHEALTHY,
        configuration_sha256=HASH,
        plan="quick",
        benchmarks=[
            item("stream", {"copy_mb_s": 360001.0, "scale_mb_s": 170000.0, "add_mb_s": 175000.0, "triad_mb_s": triad}),
            item("hpl", {"n": 15168, "nb": 192, "p": 1, "q": 1, "time_seconds": 22.87, "gflops": 1017.4}),
            item(
                "npu_burn",
                {"total": 8, "passed": 7, "failed": 1, "errors": 0},
                status=Status.UNHEALTHY,
                message="device 5 failed",
                outcome=_outcome(correctness=Correctness.FAILED, performance=Performance.NOT_JUDGED),
            ),
            item("cpu_sdc", {"threads": 64, "mismatches": 0}),
        ],
    )


def running(*, cancellable: bool = True) -> Report:
    """A job in its first item."""
    done = ended()
    items = [
        msgspec.structs.replace(
            done.benchmarks[0],
            status=Status.RUNNING,
            message="running",
            finished_at="",
            values={},
            outcome=None,
            output="",
            details={},
        ),
        BenchmarkResult(name="hpl", status=Status.PENDING, message="waiting", duration_ms=0, profile=profile("hpl")),
    ]
    return msgspec.structs.replace(done, status=Status.RUNNING, finished_at="", benchmarks=items, cancellable=cancellable)


def live(**box: Any) -> LiveJob:
    """How it gets on, on a node with sensors and two cards."""
    strip = [
        LivePoint(at=1796091000.0 + at, rate=900.0 + at, cpu_temp_c=60.0 + at, busy_mhz=3100.0, throttle_share=0.0)
        for at in range(30)
    ]
    sample: dict[str, Any] = {
        "cpu_temp_c": 89.0,
        "busy_mhz": 3100.0,
        "throttle_share": 0.0,
        "memory_stall_share": 0.012,
        "foreign_share": 0.01,
        "steal_share": 0.0,
        "devices": [
            DeviceState("gpu0", name="A card", temp_c=61.0, clock_mhz=1980.0),
            DeviceState("gpu1", name="A card", temp_c=88.0, clock_mhz=1200.0, throttle_active=ThrottleActive(hw_thermal=True)),
        ],
    }
    return LiveJob(
        job_id=JOB,
        at=1796091030.0,
        item="stream",
        number=1,
        items=2,
        elapsed_s=30.0,
        timeout_s=600.0,
        phase=LivePhase(name="triad", done=30.0, total=120.0, unit="passes", rate=929.0, rate_unit="GB/s", eta_s=90.0),
        box=LiveSample(at=1796091030.0, mono_s=400.0, **(sample | box)),
        strip=strip,
    )


def history(count: int = 100) -> list[Report]:
    """Past jobs, newest first."""
    return [
        ended(f"{number:016x}", started=f"2026-11-{30 - number // 24:02d}T{23 - number % 24:02d}:00:00+00:00")
        for number in range(count)
    ]


def trends() -> list[Trend]:
    """One line of three numbers."""
    points = [
        TrendPoint(f"{number:016x}", f"2026-11-2{number}T10:00:00+00:00", value, "")
        for number, value in enumerate((180000.0, 181000.0))
    ]
    points.append(TrendPoint(JOB, ENDED, 180000.5, "run-1796091746780972971"))
    return [Trend(benchmark="stream", identity=IDENTITY, plan="quick", metric="triad_mb_s", unit="MB/s", points=points)]


def stress_answers(
    changes: dict[str, object] | None = None, *, report: Report | None = None, now: LiveJob | None = None
) -> Answers:
    """All routes of the stress page, with ``changes``."""
    shown = report if report is not None else ended()
    return Answers(
        {
            "/api/stress/config": config(),
            "/api/stress/live": Now(report=shown, live=now),
            "/api/stress/history": history(3),
            "/api/stress/trends": trends(),
            f"/api/stress/runs/{JOB}": ended(),
            **{f"/api/stress/runs/{number:016x}": ended(f"{number:016x}") for number in range(3)},
            **(changes or {}),
        }
    )


def doctor_output() -> bytes:
    """What the doctor prints of a node with something in the dark."""
    return msgspec.json.encode(
        DoctorReport(
            user="nodeproof",
            everything_applicable_can_be_read=False,
            checks=[
                Check("configuration", Standing.OK, "built-in defaults"),
                Check("kernel log", Standing.BAD, "/dev/kmsg: permission denied", "add CAP_SYSLOG to the service"),
            ],
            readings=330,
            coverage=0.915,
            points_blind=8.5,
            causes=[
                Cause(
                    Absence.NO_PERMISSION,
                    "/dev/kmsg may not be read by nodeproof",
                    "add CAP_SYSLOG to the service",
                    ["/dev/kmsg"],
                    [f"memory.event_{number}" for number in range(9)],
                    ["memory.oom_kills"],
                    8.5,
                )
            ],
            pending=[
                Cause(Absence.UNKNOWN, "there is no link: eth1", "", ["/sys/class/net/*/speed"], ["network.speed"], [], 0.0)
            ],
            not_applicable=[NotApplicable("there is no NVIDIA or AMD GPU on the PCI bus", ["gpu.utilization"])],
        )
    )
