"""``bench.toml`` is judged strictly, each fault told with its path; a noise is never a threshold of its own."""

import base64
import datetime as dt
import math
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.gate.schema import Bound, Thresholds
from nodeproof.bench.gate.thresholds import MAX_BYTES, parse, read_thresholds
from nodeproof.errors import ConfigError
from nodeproof.model.hardware import Validity

KEY = "ed25519:" + base64.b64encode(bytes(range(32))).decode()
WHOLE = f"""
schema = 1

[[signers]]
key = "{KEY}"
name = "rack 7"

[[benchmarks]]
id = "load"
label = "sixteen streams"
note = "set from ten runs"
model = "m"
box = "h200"
status = "measured"
required = true
box_validity = "unknown"
valid_from = 2026-12-01
max_age_days = 30
fingerprint = "{"ab" * 32}"
serve_overrides = {{quant = "fp8"}}

[benchmarks.param_overrides]
concurrency = 16
stream = true
rate = 2.5
lengths = "1, 2"

[benchmarks.metrics.output_tok_s]
min = 25.5
noise = 0.5
unit = "tok/s"
valid_from = 2026-12-01T12:00:00+01:00

[benchmarks.metrics.runs]
min = 3
max = 3

[[benchmarks]]
id = "bfcl-subset"
shards = 4
status = "unmeasured"
required = false
"""


def read(text: str) -> Thresholds:
    return parse(text.encode(), "bench.toml")


def test_a_whole_file() -> None:
    found = read(WHOLE)
    assert [(signer.name, str(signer.key)) for signer in found.signers] == [("rack 7", KEY)]
    first, second = found.entries
    assert first.place == "benchmarks[0]"
    assert (first.id, first.title, first.note, first.model, first.box) == (
        "load", "sixteen streams", "set from ten runs", "m", "h200",
    )  # fmt: skip
    assert (first.measured, first.required, first.validity) == (True, True, Validity.UNKNOWN)
    assert first.valid_from == dt.datetime(2026, 12, 1, tzinfo=dt.UTC).timestamp()
    assert (first.max_age_days, first.fingerprint, first.shards) == (30.0, "ab" * 32, 0)
    assert first.param_overrides == {"concurrency": "16", "stream": "true", "rate": "2.5", "lengths": "1, 2"}
    assert first.serve_overrides == {"quant": "fp8"}
    bound = first.metrics["output_tok_s"]
    assert (bound.min, bound.max, bound.noise, bound.unit) == (25.5, None, 0.5, "tok/s")
    assert bound.valid_from == dt.datetime(2026, 12, 1, 11, tzinfo=dt.UTC).timestamp()
    assert first.metrics["runs"].exact
    assert (second.measured, second.required, second.shards, second.metrics) == (False, False, 4, {})
    assert second.title == "bfcl-subset"


def test_the_example_of_the_documents_is_one() -> None:
    page = (Path(__file__).parents[4] / "docs" / "gate.md").read_text("utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    found = read(example[1])
    assert [entry.title for entry in found.entries] == ["load m h200"]
    assert len(found.signers) == 1


HEAD = 'schema = 1\n[[benchmarks]]\nid = "load"\n'
RATE = HEAD + "[benchmarks.metrics.rate]\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "schema: is missing, expected 1"),
        ("schema = 2", "schema: is 2, this version reads 1"),
        ("schema = 'one'", "schema: is 'one', expected a number"),
        ("schema = 1", "benchmarks: there is none, so nothing would be proven"),
        ("schema = 1\nbenchmarks = 3", "benchmarks: is '3', expected tables, each under [[benchmarks]]"),
        ("schema = 1\nbenchmarks = [1]", "benchmarks: is '[1]', expected tables"),
        ("schema = 1\nthresholds = 1", "thresholds: is unknown; known are benchmarks, schema, signers"),
        ("schema = 1\n[[signers]]\nkey = 'x'", "signers[0].key: 'x' is no public key"),
        ("schema = 1\n[[signers]]\nname = 'x'", "signers[0].key: is missing, expected ed25519:"),
        (f"schema = 1\n[[signers]]\nkey = '{KEY}'\nage = 1", "signers[0].age: is unknown"),
        (f"schema = 1\n[[signers]]\nkey = '{KEY}'\n[[signers]]\nkey = '{KEY}'", "signers[1].key: stands there twice"),
        ("schema = 1\n[[benchmarks]]\nstatus = 'unmeasured'", "benchmarks[0].id: is missing"),
        (HEAD, "benchmarks[0].metrics: is missing, expected at least one metric"),
        (HEAD + "status = 'maybe'", "benchmarks[0].status: is 'maybe', expected measured or unmeasured"),
        (HEAD + "box_validity = 'invalid'", "benchmarks[0].box_validity: is 'invalid', expected valid or unknown"),
        (HEAD + "required = 'yes'", "benchmarks[0].required: is 'yes', expected true or false"),
        (HEAD + "label = ''", "benchmarks[0].label: is '', expected a text that says something"),
        (HEAD + "model = 3", "benchmarks[0].model: is '3', expected a string"),
        (
            HEAD + "valid_from = '2026-12-01'",
            "benchmarks[0].valid_from: is '2026-12-01', expected a date like 2026-12-01, without",
        ),
        (HEAD + "max_age_days = 0", "benchmarks[0].max_age_days: is 0, expected more than 0"),
        (HEAD + "max_age_days = true", "benchmarks[0].max_age_days: is 'True', expected a number"),
        (HEAD + "fingerprint = 'AB'", "benchmarks[0].fingerprint: is 'AB', expected 64 hexadecimal digits"),
        (HEAD + "shards = 0", "benchmarks[0].shards: is '0', expected a whole number from 1 to 1000"),
        (HEAD + "shards = 2.0", "benchmarks[0].shards: is '2.0', expected a whole number"),
        (HEAD + "shards = 2\nparam_overrides = {shard = '0/2'}", "benchmarks[0].param_overrides.shard: each shard has its own"),
        (HEAD + "serve_overrides = {port = 1}", "benchmarks[0].serve_overrides.port: says where a server listens"),
        (HEAD + "param_overrides = 3", "benchmarks[0].param_overrides: is '3', expected a table"),
        (HEAD + "param_overrides = {a = [1]}", "benchmarks[0].param_overrides.a: is '[1]', expected a text, a number"),
        (HEAD + "param_overrides = {a = nan}", "benchmarks[0].param_overrides.a: is 'nan', expected a text, a number"),
        (HEAD + "metrics = {rate = 3}", "benchmarks[0].metrics.rate: is '3', expected a table"),
        (HEAD + "status = 'unmeasured'\n[benchmarks.metrics.rate]\nmin = 1", "an unmeasured benchmark has no bounds"),
        (RATE, "benchmarks[0].metrics.rate.min: is missing, and max as well"),
        (RATE + "min = 'x'", "benchmarks[0].metrics.rate.min: is 'x', expected a number"),
        (RATE + "min = inf", "benchmarks[0].metrics.rate.min: is inf, expected a finite number"),
        (RATE + f"min = {'9' * 400}", "benchmarks[0].metrics.rate.min: is inf, expected a finite number"),
        (RATE + "min = 2\nmax = 1", "benchmarks[0].metrics.rate.min: is 2, more than max, which is 1"),
        (RATE + "min = 1\nmax = 1\nnoise = 0.01", "benchmarks[0].metrics.rate.noise: min and max are one value"),
        (RATE + "min = 20\nnoise = 1.1", "benchmarks[0].metrics.rate.noise: is 1.1, more than 5% of the bound, 1"),
        (RATE + "min = -1\nmax = 20\nnoise = 0.9", "benchmarks[0].metrics.rate.noise: is 0.9, more than 5% of the bound, 0.05"),
        (RATE + "max = 0\nnoise = 0.1", "benchmarks[0].metrics.rate.noise: is 0.1, more than 5% of the bound, 0"),
        (RATE + "min = 20\nnoise = -1", "benchmarks[0].metrics.rate.noise: is -1, expected at least 0"),
        (
            RATE + "min = 20\nmean = 1",
            "benchmarks[0].metrics.rate.mean: is unknown; known are max, min, noise, note, unit, valid_from",
        ),
        (HEAD + "[benchmarks.metrics.ttft_p50_ms]\nmax = 1\nunit = 's'", "ttft_p50_ms.unit: is 's', but ttft_p50_ms is in ms"),
        (HEAD + '[benchmarks.metrics."a b\\u001b"]\nunit = "s"', r"benchmarks[0].metrics.'a b\x1b'.min: is missing"),
        (
            RATE + "min = 1\n[[benchmarks]]\nid = 'load'\n[benchmarks.metrics.rate]\nmin = 1",
            "benchmarks[1]: the same as benchmarks[0]",
        ),
        ("schema = [", "is no TOML"),
        ("a = 1\na = 2", "is no TOML"),
    ],
)
def test_a_fault_is_told_with_its_path(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert fault in str(caught.value)
    assert str(caught.value).startswith("bench.toml: ")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read(HEAD + "model = 3\nbox = 4\n[benchmarks.metrics.rate]\nmin = 'x'")
    assert str(caught.value).count("benchmarks[0].") == 4


def test_bytes_that_are_no_text_and_files_that_are_too_large() -> None:
    with pytest.raises(ConfigError, match="byte 3 is no UTF-8"):
        parse(b"a='\xff'", "bench.toml")
    with pytest.raises(ConfigError, match="larger than 1048576 bytes"):
        parse(b"#" * (MAX_BYTES + 1), "bench.toml")
    with pytest.raises(ConfigError, match="is no TOML"):
        parse(b"a = " + b"[" * 100_000, "bench.toml")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"/nowhere/bench.toml: No such file or directory \(name another with --file\)"):
        read_thresholds("/nowhere/bench.toml")


@pytest.mark.parametrize(
    ("low", "high", "noise", "value", "kept"),
    [
        (25.5, None, 0.5, 25.0, True),
        (25.5, None, 0.5, 24.999, False),
        (None, 10.0, 0.5, 10.5, True),
        (None, 10.0, 0.5, 10.501, False),
        (3.0, 3.0, 0.0, 3.0, True),
        (3.0, 3.0, 0.0, 3.0001, False),
        (1.0, 2.0, 0.05, 0.95, True),
        (1.0, 2.0, 0.05, 2.06, False),
    ],
)
def test_a_bound_is_kept_within_its_noise(
    low: float | None, high: float | None, noise: float, value: float, *, kept: bool
) -> None:
    assert Bound(metric="x", min=low, max=high, noise=noise).keeps(value) is kept


def test_how_a_bound_is_said() -> None:
    assert Bound(metric="x", min=25.5, noise=0.5, unit="tok/s").words() == "at least 25.5 tok/s, noise 0.5"
    assert Bound(metric="x", min=1, max=2).words() == "at least 1 and at most 2"
    assert Bound(metric="x", min=3, max=3).words() == "exactly 3"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    ["id", "label", "model", "status", "required", "valid_from", "shards", "metrics", "param_overrides", "fingerprint", "bogus"]
)


def _toml(value: object) -> str:  # noqa: PLR0911 - one for each type of TOML
    if value is None:
        return "''"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value!r}".replace("e", "e")
    if isinstance(value, (int, dt.date)):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value if not 0xD800 <= ord(char) <= 0xDFFF) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    assert isinstance(value, dict)
    return "{" + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items()) + "}"


@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=6), max_size=3))
def test_any_file_is_taken_or_refused_with_a_path(tables: list[dict[str, object]]) -> None:
    text = "schema = 1\n" + "".join(
        "[[benchmarks]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in table.items()) for table in tables
    )
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError):
        return
    try:
        found = read(text)
    except ConfigError as error:
        assert "bench.toml: " in str(error)
        assert "benchmarks" in str(error)
    else:
        for entry in found.entries:
            assert entry.measured == bool(entry.metrics)


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        parse(data, "bench.toml")


@given(
    bound=st.floats(-1e6, 1e6, allow_nan=False),
    noise=st.floats(0, 1e5),
    low=st.booleans(),
)
def test_noise_is_never_more_than_a_twentieth_of_the_bound(bound: float, noise: float, *, low: bool) -> None:
    text = RATE + f"{'min' if low else 'max'} = {bound!r}\nnoise = {noise!r}\n"
    if noise <= 0.05 * abs(bound):
        assert read(text).entries[0].metrics["rate"].noise == noise
    elif noise > 0.0500001 * abs(bound):
        with pytest.raises(ConfigError, match=r"metrics\.rate\.noise: is .*, more than 5% of the bound"):
            read(text)
