"""Every key that a configuration file may have, with its check and its help; ``docs/config.md`` is printed from here."""

from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.config import fields
from nodeproof.config.fields import Check
from nodeproof.model.feature import FEATURES

__all__ = ["RENAMED", "SCHEMA", "Dead", "Each", "Key", "Node", "Section"]

_BENCHMARKS = ("gpu_burn", "hpcg", "hpl", "npu_burn", "stream", "cpu_sdc", "memory_pattern")
_ONE_HOUR_S = 3600.0


class Key(NamedTuple):
    """A key with a value."""

    check: Check[object]
    help: str


class Dead(NamedTuple):
    """A key of the reference that loads and does nothing."""

    help: str


class Section(NamedTuple):
    """A mapping with known keys."""

    keys: Mapping[str, "Node"]
    help: str = ""


class Each(NamedTuple):
    """A mapping whose keys are names of things, all with the same content."""

    item: "Node"
    help: str
    names: tuple[str, ...] | None = None


Node = Key | Dead | Section | Each

RENAMED = {
    "deadline": "deadline_s",
    "flush_interval": "flush_interval_s",
    "interval": "interval_s",
    "max_file_age": "max_file_age_s",
    "max_total_size": "max_total_bytes",
    "retention": "retention_s",
    "runtime": "runtime_s",
    "timeout": "timeout_s",
    "webhook_give_up": "webhook_give_up_s",
    "webhook_timeout": "webhook_timeout_s",
}
"""Keys of the file whose value has a unit, and the field it becomes."""

_UNUSED = Dead("Never had an effect in the reference either.")
_SCHEMES = ("auto", "cpu_only", "accelerated_2card", "accelerated_4card", "accelerated_8card")

_NATIVE = Section(
    {
        "executable": Key(fields.optional_path, "The program; if not set, it is looked for on the search path."),
        "workdir": Key(fields.optional_path, "Where it runs and finds HPL.dat; if not set, one is made for each run."),
        "launcher": Key(fields.optional_path, "mpirun; if not set, it is looked for on the search path."),
        "launcher_arguments": Key(fields.words, "Further arguments of mpirun, after -np and its number."),
        "arguments": Key(fields.words, "Further arguments of the program."),
        "numactl": Key(fields.optional_path, "numactl, to interleave the memory of stream."),
        "library_dir": Key(fields.optional_path, "Goes before LD_LIBRARY_PATH."),
        "processes": Key(fields.integer(0, 1_000_000), "MPI processes; 0 chooses for this box."),
        "threads": Key(fields.integer(0, 1_000_000), "Threads of each process; 0 chooses for this box."),
        "grid": Key(fields.edges, "Local grid of HPCG."),
        "runtime": Key(fields.duration(0.0, zero_is=0.0), "Rated time of HPCG; 0s is the plan's."),
    },
    "Programs of the administrator's, for adapter native; what is not set is taken from the reference dispatcher's variables.",
)

SCHEMA = Section(
    {
        "collectors": Each(
            Section(
                {
                    "enabled": Key(fields.boolean, "Whether it runs."),
                    "interval": Key(
                        fields.duration(0.1, 86400.0),
                        "Time between two cycles, where no enabled feature asks for another.",
                    ),
                    "deadline": Key(
                        fields.duration(0.1, 3600.0),
                        "How long a cycle may take before it counts as hung; if not set, three intervals and at least 10s.",
                    ),
                }
            ),
            "One entry a collector: chassis, cpu, disk, gpu, memory, network, npu, system, or a plug-in's name.",
        ),
        "collection": Section(
            {
                "min_priority": Key(
                    fields.one_of("low", "medium", "high"), "Metrics below this priority are left out, statics apart."
                ),
                "interval_from": Key(
                    fields.one_of("features", "collectors"),
                    "Who decides the cadence: features (the quickest enabled one does) or collectors (their entries do).",
                ),
            },
            "What is collected, and how often.",
        ),
        "features": Key(
            fields.listing(fields.text, tuple(FEATURES)),
            "Consumers to collect for: their lists of metrics and their cadence. An empty list collects every default metric.",
        ),
        "snapshot": Section(
            {
                "enabled": Key(fields.boolean, "Whether the files are written. The page, check and explain read them."),
                "dir": Key(fields.absolute_path, "Directory of the files; one daemon each."),
            },
            "Snapshot files of the present and the last minutes.",
        ),
        "storage": Section(
            {
                "enabled": Key(fields.boolean, "Whether data files are written."),
                "data_dir": Key(fields.absolute_path, "Directory of the files, one a component and day."),
                "interval": Key(
                    fields.duration(1.0, 86400.0),
                    "A line a metric is written this often; a change of a state is written at once.",
                ),
                "max_file_age": Key(fields.duration(3600.0), "Files older than this are removed."),
                "max_total_size": Key(fields.size_bytes, "Beyond this the oldest files are removed."),
                "rotation": Dead("Data files are always kept by day."),
            },
            "JSON lines for later.",
        ),
        "exporter": Section(
            {
                "enabled": Key(fields.boolean, "Whether it listens."),
                "address": Key(
                    fields.address("127.0.0.1:19320"), "Where it listens; a taken port is an error, never another port."
                ),
                "naming": Key(
                    fields.one_of("nodeproof", "catmonitor"),
                    "Metric names: ours in base units, or the reference's for its dashboards.",
                ),
                "allowed_hosts": Key(
                    fields.listing(fields.text), "Host names that requests may carry besides the address and the loopback names."
                ),
            },
            "Prometheus exporter.",
        ),
        "web": Section(
            {
                "enabled": Key(fields.boolean, "Whether nodeproof up serves the page; nodeproof daemon never does."),
                "address": Key(
                    fields.address("127.0.0.1:9527"),
                    "Where it listens; beyond loopback only with token_file, tls_cert and tls_key. A taken port is an error.",
                ),
                "allowed_hosts": Key(
                    fields.listing(fields.text), "Host names that requests may carry besides the address and the loopback names."
                ),
                "token_file": Key(
                    fields.optional_path,
                    "Lines of role (operator or viewer), name and token. Once it is set, nothing is told without a token.",
                ),
                "tls_cert": Key(fields.optional_path, "Certificate with its chain, PEM."),
                "tls_key": Key(fields.optional_path, "The key that belongs to it, PEM, readable by nobody else."),
            },
            "The page and its JSON, served from the snapshot files.",
        ),
        "health": Section(
            {
                "weight_scheme": Key(
                    fields.one_of(*_SCHEMES), "Weights of the components; auto chooses by the hardware that answers."
                ),
                "ruleset": Key(fields.one_of("0.3.5", "0.3.3"), "Rule tables to judge by."),
                "enabled": Dead("Health is always judged."),
            },
            "Scoring.",
        ),
        "faultsub": Section(
            {
                "enabled": Key(fields.boolean, "Whether subscribers are served; faults are found and kept whatever this says."),
                "dir": Key(
                    fields.absolute_path, "Directory of the faults and their log; faults below storage.data_dir if not set."
                ),
                "rest_addr": Key(
                    fields.address("127.0.0.1:19321"),
                    "Where it listens. It knows no tokens: an address beyond loopback is narrowed to loopback, on its port.",
                ),
                "operators": Key(
                    fields.listing(fields.text),
                    "Users, and %groups, who may subscribe and hand events in, beside root and the user of the daemon.",
                ),
                "webhook_timeout": Key(fields.duration(0.1, 60.0, zero_is=5.0), "Limit of one delivery."),
                "webhook_retry": Key(
                    fields.integer(0, 100_000),
                    "Further attempts before an event goes to the dead letters; not set: as long as webhook_give_up allows.",
                ),
                "webhook_give_up": Key(
                    fields.duration(1.0, 30 * 86400.0),
                    "An event that could not be delivered for so long goes to the dead letters.",
                ),
                "webhook_allow": Key(
                    fields.listing(fields.text),
                    "Private addresses and networks that webhooks may be sent to, and host names that may mean any address.",
                ),
                "allowed_hosts": Key(
                    fields.listing(fields.text), "Host names that requests may carry besides the address and the loopback names."
                ),
                "event_buffer": Key(fields.integer(-1_000_000, 1_000_000), "Events kept for polling; below zero means none."),
                "defaults": Section({"debounce_ms": _UNUSED, "min_severity": _UNUSED}, "Defaults of subscriptions."),
                "rules": Each(
                    Key(fields.boolean, "Whether this fault is detected."), "Switch by fault type; what is not named is on."
                ),
            },
            "Faults: what is found, where it is kept, and who is told.",
        ),
        "straggler_output": Section(
            {
                "enabled": Key(fields.boolean, "Whether files are written."),
                "data_dir": Key(fields.absolute_path, "Directory of the files."),
                "retention": Key(fields.duration(3600.0, zero_is=360 * _ONE_HOUR_S), "Files older than this are removed."),
                "flush_interval": Key(fields.duration(0.1, 86400.0, zero_is=60.0), "Longest time a sample stays in memory."),
                "metrics": _UNUSED,
            },
            "KPI files for slow-node detectors: a line a sample, a file a day.",
        ),
        "stress": Section(
            {
                "enabled": Key(fields.boolean, "Whether jobs may be started."),
                "web_enabled": Key(fields.boolean, "Whether the page may start them."),
                "script_path": Key(fields.optional_path, "Dispatcher that runs every item."),
                "report_path": Key(fields.optional_path, "Report of the newest job; history and lock lie beside it."),
                "default_benchmarks": Key(fields.listing(fields.text, _BENCHMARKS), "Items of a job that names none."),
                "benchmarks": Each(
                    Section(
                        {
                            "enabled": Key(fields.boolean, "Whether the item may run."),
                            "timeout": Key(fields.duration(0.0, zero_is=_ONE_HOUR_S), "Limit of a run; zero means one hour."),
                            "result_dir": Key(fields.optional_path, "Where the item leaves result files."),
                            "adapter": Key(
                                fields.one_of("builtin", "native"), "Our workload, or a program of the administrator's."
                            ),
                            "native": _NATIVE,
                        }
                    ),
                    "One entry an item.",
                    _BENCHMARKS,
                ),
            },
            "Stress jobs. Without this section the built-in workloads are on; with it, all is off that is not switched on.",
        ),
        "server": Section({"type": _UNUSED}, "A section of the reference."),
    }
)
"""Every key that a file may have."""
