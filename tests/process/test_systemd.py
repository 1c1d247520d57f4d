"""The services under a real systemd: installed, hardened, asked, reloaded and taken away again.

It boots in a container over this machine's own files, so what the hardened daemon reads can be compared, reading by reading, with
what root reads beside it.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.booted import PROGRAM, Booted, cannot_boot

pytestmark = pytest.mark.timeout(200)
SCRIPT = f"""
cd /probe
umount /proc/sys/kernel/random/boot_id 2> /dev/null  # the container's own; a hardened unit sees the kernel's
export LD_LIBRARY_PATH=/opt/python/lib
timed() {{
    local began=$(date +%s%N)
    "${{@:2}}" > $1.txt 2> $1.err
    echo $? > $1.rc
    echo $((($(date +%s%N) - began) / 1000000)) > $1.ms
}}
timed install {PROGRAM} install
for second in $(seq 40); do {PROGRAM} check > /dev/null 2>&1; [ $? != 3 ] && break; sleep 0.5; done
sleep 4
systemctl is-active nodeproof nodeproof-web nodeproof-runner nodeproof-reader.socket nodeproof-reader > active.txt
{PROGRAM} check > check.txt 2>&1; echo $? > check.rc
mkdir snapshot; cp /run/nodeproof/snapshot/*.json snapshot/
{PROGRAM} collect --missing -o json > open.json
timed stress runuser -u nodeproof-web -G nodeproof-jobs -- {PROGRAM} stress cpu_sdc --seconds 1 --plan quick -o json
timed refused runuser -u nobody -- {PROGRAM} stress cpu_sdc --seconds 1 --plan quick -o json
timed reload systemctl reload nodeproof; sleep 3
systemctl is-active nodeproof > reloaded.txt
systemctl kill --signal=KILL nodeproof; sleep 4; systemctl is-active nodeproof > restarted.txt
journalctl --no-pager -o cat -u nodeproof -u nodeproof-runner -u nodeproof-reader > journal.txt
timed uninstall {PROGRAM} uninstall
systemctl list-unit-files --no-legend 'nodeproof*' > left.txt
"""


class Seen(NamedTuple):
    """What a boot left."""

    boot: Booted
    snapshot: Path

    def read(self, name: str) -> str:
        return self.boot.read(name)

    def number(self, name: str) -> int:
        return int(self.boot.read(name))


Key = tuple[str, str, str]


def key(component: str, entry: dict[str, object]) -> Key:
    return component, str(entry["name"]), json.dumps(entry.get("labels") or {}, sort_keys=True)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen | None]:
    why_not = cannot_boot()
    if why_not:
        yield None
        return
    folder = tmp_path_factory.mktemp("booted")
    try:
        boot = Booted(folder, SCRIPT)
    except (subprocess.SubprocessError, OSError):
        yield None
        return
    if not boot.exists("/probe/left.txt"):
        yield None
        return
    yield Seen(boot, folder / "upper" / "probe" / "snapshot")


@pytest.fixture(autouse=True)
def _say_when_absent(seen: Seen | None, absent_here: list[str]) -> None:
    if seen is None:
        absent_here.append(f"the services under a real systemd: {cannot_boot() or 'no container could be booted here'}")


def test_the_installation_works_in_seconds(seen: Seen | None) -> None:
    if seen is None:
        return
    assert (seen.number("install.rc"), seen.read("install.err")) == (0, "")
    assert seen.number("install.ms") < 5000
    assert seen.read("active.txt").split() == ["active"] * 5


def test_check_tells_the_verdict_of_the_service(seen: Seen | None) -> None:
    if seen is None:
        return
    assert seen.number("check.rc") in {0, 1, 2}, seen.read("check.txt")
    assert "score" in seen.read("check.txt")


def test_the_hardened_daemon_reads_everything_that_root_reads(seen: Seen | None) -> None:
    if seen is None:
        return
    hardened: set[Key] = set()
    for path in seen.snapshot.glob("snapshot_*.json"):
        document = json.loads(path.read_text())
        component = path.stem.removeprefix("snapshot_")
        hardened |= {key(component, entry) for part in ("metrics", "specs") for entry in document.get(part, [])}
    lines = [json.loads(line) for line in seen.read("open.json").splitlines()]
    root = {key(entry["component"], entry) for entry in lines if "state" not in entry}
    assert len(root) > 150
    # A disk has a latency only while it works, and what share of segments was sent again can be told only where any was sent:
    # whichever of the two looked at such a moment has one more reading.
    passing = {"read_latency", "write_latency", "tcp_retransmit_ratio"}
    assert {entry for entry in root - hardened if entry[0] != "daemon" and entry[1] not in passing} == set()


def test_the_kernel_log_came_through_the_reader(seen: Seen | None) -> None:
    if seen is None:
        return
    document = json.loads((seen.snapshot / "snapshot_system.json").read_text())
    assert not [entry for entry in document.get("missing", []) if "kmsg" in entry.get("reason", "")]


def test_a_member_of_the_group_runs_a_job_and_others_do_not(seen: Seen | None) -> None:
    if seen is None:
        return
    report = json.loads(seen.read("stress.txt"))
    assert (seen.number("stress.rc"), report["status"]) == (0, "healthy")
    tree = report["benchmarks"][0]["details"]["process_tree"]
    assert tree["empty"]
    assert any("/nodeproof.slice/nodeproof-jobs.slice/nodeproof-runner.service/" in line for line in tree["evidence"]), tree
    assert seen.number("refused.rc") == 1
    assert "join the group of its socket" in seen.read("refused.err")


def test_reload_and_kill_are_survived(seen: Seen | None) -> None:
    if seen is None:
        return
    assert (seen.number("reload.rc"), seen.read("reloaded.txt"), seen.read("restarted.txt")) == (0, "active\n", "active\n")


def test_uninstall_takes_everything_back_but_what_was_recorded(seen: Seen | None) -> None:
    if seen is None:
        return
    assert (seen.number("uninstall.rc"), seen.read("uninstall.err"), seen.read("left.txt")) == (0, "", "")
    assert seen.number("uninstall.ms") < 5000
    for path in ("/etc/systemd/system/nodeproof.service", "/etc/nodeproof", "/usr/share/man/man1/nodeproof.1"):
        assert not seen.boot.exists(path), path
    assert seen.boot.exists("/var/lib/nodeproof/data")
