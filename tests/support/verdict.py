"""A verdict, as the health room gives them."""

from nodeproof.model.health import ComponentScore, Deduction, Finding, Grade, HealthScore, Reading, Severity

__all__ = ["HEALTH"]

FINDING = Finding(
    rule="disk.raid_degraded",
    severity=Severity.WARNING,
    component="disk",
    message="md0 is degraded",
    reading=Reading("disk", "raid_state", 1.0, ""),
    source="/proc/mdstat",
    age_s=0.0,
    threshold="> 0",
    clears_when="<= 0",
    since="2026-11-30T22:00:00+00:00",
)
HEALTH = HealthScore(
    score=83,
    grade=Grade.GOOD,
    server_type="cpu_only",
    components={"cpu": ComponentScore(20, 25, [Deduction("load>cores*2", 5.0)])},
    timestamp="2026-11-30T22:00:00+00:00",
    scheme="cpu_only",
    ruleset="0.3.5",
    coverage=0.975,
    unknown=[],
    findings=[FINDING],
)
