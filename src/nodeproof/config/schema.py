"""The effective configuration, every value resolved. Durations are seconds, sizes are bytes."""

import msgspec

__all__ = [
    "BenchmarkConfig",
    "CollectionConfig",
    "CollectorConfig",
    "Config",
    "ExporterConfig",
    "FaultsubConfig",
    "HealthConfig",
    "NativeConfig",
    "SnapshotConfig",
    "StorageConfig",
    "StragglerConfig",
    "StressConfig",
    "WebConfig",
]


class CollectorConfig(msgspec.Struct, frozen=True):
    """One entry of ``collectors``."""

    enabled: bool = True
    interval_s: float | None = None
    """None = the collector's own."""
    deadline_s: float | None = None
    """How long one cycle may take before the collector counts as hung; None = three intervals, at least 10 s."""


class StorageConfig(msgspec.Struct, frozen=True):
    """JSONL data files."""

    data_dir: str
    enabled: bool = True
    interval_s: float = 60.0
    """A line a metric is kept this often, and every change of a state at once."""
    max_file_age_s: float = 168 * 3600.0
    max_total_bytes: int = 210_000_000
    """All data files together: seven days of 30 MB."""


class SnapshotConfig(msgspec.Struct, frozen=True):
    """Snapshot directory."""

    dir: str
    enabled: bool = True


class HealthConfig(msgspec.Struct, frozen=True):
    """Scoring."""

    weight_scheme: str = "auto"
    ruleset: str = "0.3.5"


class CollectionConfig(msgspec.Struct, frozen=True):
    """What is collected, and how often."""

    min_priority: str = "low"
    interval_from: str = "features"
    """``features``: the quickest enabled feature decides, as in the reference; ``collectors``: its entries do."""


class ExporterConfig(msgspec.Struct, frozen=True):
    """Prometheus exporter."""

    enabled: bool = True
    address: str = "127.0.0.1:19320"
    naming: str = "nodeproof"
    allowed_hosts: tuple[str, ...] = ()
    """Host names that requests may carry besides the bound address and the loopback names."""


class WebConfig(msgspec.Struct, frozen=True):
    """The page."""

    enabled: bool = True
    """Of ``nodeproof up``; ``nodeproof web`` serves whatever this says."""
    address: str = "127.0.0.1:9527"
    allowed_hosts: tuple[str, ...] = ()
    """Host names that requests may carry besides the bound address and the loopback names."""
    token_file: str = ""
    """Who may come, and as what; needed beyond loopback, and asked for everywhere once it is set."""
    tls_cert: str = ""
    tls_key: str = ""


class FaultsubConfig(msgspec.Struct, frozen=True):
    """Faults, and who is told of them."""

    dir: str
    """Where faults and their log are kept."""
    enabled: bool = False
    """Whether subscribers are served; faults are found whatever this says."""
    rest_addr: str = "127.0.0.1:19321"
    webhook_timeout_s: float = 5.0
    webhook_retry: int | None = None
    """Further attempts before an event is given up; None = until ``webhook_give_up_s``."""
    webhook_give_up_s: float = 72 * 3600.0
    webhook_allow: tuple[str, ...] = ()
    """Private addresses, networks and names that may be sent to."""
    operators: tuple[str, ...] = ()
    """Who may subscribe and hand events in, beside root and the daemon's own user."""
    allowed_hosts: tuple[str, ...] = ()
    event_buffer: int = 1024
    rules: dict[str, bool] = {}


class StragglerConfig(msgspec.Struct, frozen=True):
    """KPI files for slow-node detectors."""

    data_dir: str
    enabled: bool = False
    retention_s: float = 360 * 3600.0
    flush_interval_s: float = 60.0


class NativeConfig(msgspec.Struct, frozen=True):
    """``stress.benchmarks.<name>.native``: programs of the administrator's. Empty = looked for, 0 = chosen for this box."""

    executable: str = ""
    workdir: str = ""
    launcher: str = ""
    launcher_arguments: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    numactl: str = ""
    library_dir: str = ""
    processes: int = 0
    threads: int = 0
    grid: tuple[int, ...] = ()
    runtime_s: float = 0.0


class BenchmarkConfig(msgspec.Struct, frozen=True):
    """One entry of ``stress.benchmarks``."""

    enabled: bool = False
    timeout_s: float = 0.0
    result_dir: str = ""
    adapter: str = "builtin"
    native: NativeConfig = NativeConfig()


class StressConfig(msgspec.Struct, frozen=True):
    """Stress jobs."""

    enabled: bool = False
    web_enabled: bool = False
    script_path: str = ""
    report_path: str = ""
    default_benchmarks: tuple[str, ...] = ()
    benchmarks: dict[str, BenchmarkConfig] = {}


class Config(msgspec.Struct, frozen=True):
    """Everything."""

    storage: StorageConfig
    snapshot: SnapshotConfig
    straggler_output: StragglerConfig
    faultsub: FaultsubConfig
    source: str = "built-in defaults"
    """The file it was read from."""
    collectors: dict[str, CollectorConfig] = {}
    health: HealthConfig = HealthConfig()
    collection: CollectionConfig = CollectionConfig()
    features: tuple[str, ...] = ("web", "dfee", "health")
    exporter: ExporterConfig = ExporterConfig()
    web: WebConfig = WebConfig()
    stress: StressConfig | None = None
    """None = no such section: the built-in workloads are on for the command line and the loopback page."""
    warnings: tuple[str, ...] = ()
    """What the file says that has no effect."""
