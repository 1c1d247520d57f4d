"""A real daemon on a made-up node with eight Ascend chips: files for slow-node detectors, beside the interface for faults."""

import json
from pathlib import Path

import pytest

from support.daemon import free_port, nodeproof, until
from support.npu_daemon import NpuNode

pytestmark = pytest.mark.timeout(120)


def test_defect_26_the_interface_for_faults_leaves_the_files_for_detectors_alone(tmp_path: Path) -> None:
    node = NpuNode(
        tmp_path,
        library=False,
        straggler_output={"enabled": True, "data_dir": str(tmp_path / "kpi"), "flush_interval": "1s"},
        faultsub={"enabled": True, "rest_addr": f"127.0.0.1:{free_port()}"},
    )
    try:
        node.start()

        def written() -> list[dict[str, dict[str, float]]]:
            lines = [line for path in (tmp_path / "kpi").glob("straggler_kpi_*.jsonl") for line in path.read_text().splitlines()]
            return [told["vals"] for line in lines if (told := json.loads(line)).get("vals")]

        cards = until(written, f"a sample of the chips; the log:\n{node.daemon.log()}", 30.0)[0]
        assert sorted(cards) == list("01234567")
        assert cards["3"]["power"] == 94.5
        said = nodeproof("straggler", "--dir", str(tmp_path / "kpi"), env=node.daemon.env)
        assert said.code == 3, "a minute of readings is not there yet, and that is no verdict"
    finally:
        node.daemon.clean_up()
