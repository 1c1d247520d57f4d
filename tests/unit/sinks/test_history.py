import msgspec
import pytest

from nodeproof.clock import Instant
from nodeproof.model.metric import Metric
from nodeproof.model.snapshot import SeriesHistory
from nodeproof.sinks.history import TRACKED_SERIES, ComponentHistory
from support.batches import batch, metric

START_WALL_S = 1_790_000_000.0
START_MONO_S = 1000.0

# The table of observe.md 4.4, by hand.
TABLE = """
cpu_usage cpu usage core=total first
cpu_load_average cpu load_average interval=1m first
memory_usage memory usage - first
memory_swap_usage memory swap_usage - first
disk_space_usage disk space_usage - max
gpu_utilization gpu utilization - first
gpu_memory_usage gpu memory_usage - first
gpu_temperature gpu temperature - first
npu_utilization npu utilization - first
npu_memory_usage npu memory_usage - first
npu_temperature npu temperature - first
cpu_temperature cpu temperature - max
cpu_power cpu power - max
cpu_avg_freq cpu avg_freq - first
cpu_context_switches cpu context_switches - first
cpu_ce_errors cpu cpu_ce_errors - max
memory_saturation memory saturation interval=avg10 first
memory_fragmentation memory fragmentation - max
memory_swap_in memory swap_in - first
memory_power memory power - max
disk_io_wait disk io_wait - first
disk_iops disk iops - max
disk_throughput disk throughput - max
network_throughput network throughput - max
network_packet_count network packet_count - max
network_error_count network error_count - max
"""


def test_the_twenty_six_series_of_the_reference_in_its_order() -> None:
    ours = [
        f"{s.key} {s.component} {s.metric} {'='.join(s.label) if s.label else '-'} {'max' if s.largest else 'first'}"
        for s in TRACKED_SERIES
    ]
    assert ours == TABLE.split("\n")[1:-1]
    assert len(ours) == 26
    assert all(s.key.startswith(f"{s.component}_") for s in TRACKED_SERIES)


class Story:
    """Batches of one component, a second apart."""

    def __init__(self, component: str = "cpu", size: int = 60) -> None:
        self.history = ComponentHistory(component, size)
        self.component = component
        self.second = 0

    def tell(self, *metrics: Metric, pause_s: int = 1) -> None:
        at = Instant(START_WALL_S + self.second, START_MONO_S + self.second)
        self.history.update(batch(metrics, component=self.component, at=at), 5.0)
        self.second += pause_s


def test_first_takes_the_first_that_matches_its_label() -> None:
    story = Story()
    story.tell(
        metric("usage", 1.0, {"core": "0"}),
        metric("usage", 7.5, {"core": "total"}),
        metric("usage", 9.0, {"core": "total"}),
        metric("usage", 9.0),
    )
    assert story.history.numbers() == {"cpu_usage": [7.5]}


def test_max_takes_the_largest_and_names_it() -> None:
    story = Story("disk")
    story.tell(
        metric("space_usage", 15.0, {"mount_point": "/"}),
        metric("space_usage", 91.0, {"mount_point": "/data"}),
        metric("space_usage", 40.0, {"mount_point": "/home"}),
    )
    assert story.history.numbers() == {"disk_space_usage": [91.0]}
    assert story.history.series() == {"disk_space_usage": SeriesHistory([(START_WALL_S, 91.0)], {"mount_point": "/data"})}


def test_defect_22_negative_values_are_values() -> None:
    story = Story()
    story.tell(metric("temperature", -12.0, {"cpu": "0"}), metric("temperature", -5.5, {"cpu": "1"}))
    assert story.history.numbers() == {"cpu_temperature": [-5.5]}
    story.tell(metric("temperature", -1.0))
    assert story.history.numbers() == {"cpu_temperature": [-5.5, -1.0]}


def test_defect_22_first_says_which_card_it_shows() -> None:
    story = Story("gpu")
    story.tell(metric("utilization", 3.0, {"gpu_id": "2"}), metric("utilization", 99.0, {"gpu_id": "3"}))
    assert story.history.series()["gpu_utilization"].entity == {"gpu_id": "2"}


def test_defect_22_a_missing_point_is_a_gap_with_its_time() -> None:
    story = Story("memory")
    story.tell(metric("usage", 10.0))
    story.tell()
    story.tell(metric("usage", 12.0))
    assert story.history.numbers() == {"memory_usage": [10.0, 12.0]}
    assert story.history.series()["memory_usage"].points == [
        (START_WALL_S, 10.0),
        (START_WALL_S + 1, None),
        (START_WALL_S + 2, 12.0),
    ]


def test_a_metric_that_never_came_has_no_series() -> None:
    story = Story("memory")
    story.tell()
    story.tell(metric("power", 5.0))
    assert list(story.history.series()) == ["memory_power"]


def test_no_line_is_drawn_across_a_long_pause() -> None:
    story = Story("memory")
    story.tell(metric("usage", 10.0), pause_s=600)
    story.tell(metric("usage", 12.0))
    assert story.history.series()["memory_usage"].points == [
        (START_WALL_S, 10.0),
        (START_WALL_S + 5.0, None),
        (START_WALL_S + 600, 12.0),
    ]
    assert story.history.numbers() == {"memory_usage": [10.0, 12.0]}


@pytest.mark.parametrize(("size", "kept"), [(3, 3), (0, 60), (-1, 60)])
def test_the_ring_keeps_the_newest(size: int, kept: int) -> None:
    story = Story("memory", size)
    for value in range(70):
        story.tell(metric("usage", float(value)))
    assert story.history.numbers()["memory_usage"] == [float(value) for value in range(70 - kept, 70)]
    assert len(story.history.series()["memory_usage"].points) == kept
    assert story.history.series()["memory_usage"].points[-1] == (START_WALL_S + 69, 69.0)


def test_what_was_encoded_point_by_point_is_what_is_there() -> None:
    story = Story("disk")
    story.tell(metric("io_wait", 0.1), metric("iops", 5, {"device": 'a"\\b\n', "direction": "read"}))
    story.tell(metric("iops", 1e-7))
    numbers = msgspec.json.decode(story.history.numbers_json(), type=dict[str, list[float]])
    series = msgspec.json.decode(story.history.series_json(), type=dict[str, SeriesHistory])
    assert numbers == story.history.numbers() == {"disk_io_wait": [0.1], "disk_iops": [5, 1e-7]}
    assert series == story.history.series()
    assert series["disk_io_wait"].points == [(START_WALL_S, 0.1), (START_WALL_S + 1, None)]


def test_a_component_without_tracked_series_has_an_empty_history() -> None:
    story = Story("chassis")
    story.tell(metric("fan_speed", 4000.0, component="chassis"))
    assert bytes(story.history.numbers_json()) == b"{}"
    assert bytes(story.history.series_json()) == b"{}"
