"""What owner and keeper hand each other comes through unchanged."""

import json
import os

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.job_record import JobLimits, JobSpec, boottime_s, record_of
from nodeproof.host.locks import boot_id
from nodeproof.model.process import Limits

text = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)


def spec(argv: tuple[str, ...] = ("/bin/true",), environment: dict[str, str] | None = None) -> JobSpec:
    limits = JobLimits(**msgspec.structs.asdict(Limits(cpus=(0, 3), duration_s=1.5)))
    return JobSpec("tok", argv, argv[0], "/work", environment or {}, limits, "/run/o", "/run/r", (812, 40127), use_cgroup=True)


def test_limits_of_the_model_are_those_of_the_keeper() -> None:
    assert JobLimits._fields == Limits.__struct_fields__


@given(st.lists(text, min_size=1, max_size=5), st.dictionaries(text, text, max_size=5))
def test_spec_there_and_back(argv: list[str], environment: dict[str, str]) -> None:
    asked = spec(tuple(argv), environment)
    got = JobSpec.from_json(asked.to_json())
    assert (list(got.argv), got.environment) == (argv, environment)
    assert (got.limits.duration_s, list(got.limits.cpus), list(got.owner), got.use_cgroup) == (1.5, [0, 3], [812, 40127], True)


def test_bytes_that_are_no_text_come_through() -> None:
    """Paths are bytes; Python carries what is no UTF-8 in surrogates."""
    odd = os.fsdecode(b"/tmp/\xff\xfe")
    assert JobSpec.from_json(spec((odd,)).to_json()).argv == [odd]  # type: ignore[comparison-overlap]  # JSON has lists only


def test_record() -> None:
    raw = record_of(spec(), {"state": "running", "mark": 7}, None)
    assert raw.endswith(b"}\n")
    record = json.loads(raw)
    assert record == {
        "schema": 1,
        "token": "tok",
        "boot_id": boot_id(),
        "owner": [812, 40127],
        "argv": ["/bin/true"],
        "state": "running",
        "mark": 7,
    }
    assert json.loads(record_of(spec(), {"state": "ended"}, {"kind": "exited"}))["ended"] == {"kind": "exited"}


def test_clock_runs_on() -> None:
    assert 0 < boottime_s() <= boottime_s()
