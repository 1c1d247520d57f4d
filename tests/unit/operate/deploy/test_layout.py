"""Directories with their owners, and what stands in their way."""

import os
import stat
from pathlib import Path

import pytest

from nodeproof.cli.main import main
from nodeproof.errors import WriteError
from nodeproof.operate.deploy import layout
from nodeproof.operate.deploy.layout import Installation, folders, install, make_folders, tmpfiles
from nodeproof.operate.deploy.manifest import load
from nodeproof.operate.deploy.problems import DeployError
from support.deploy import Yard

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _as_root(absent_here: list[str]) -> None:
    if os.geteuid() != 0:
        absent_here.append("only root gives directories to others: directories of deployments were not made")
        pytest.skip("not root")


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def owners(yard: Yard) -> dict[str, tuple[int, int, int]]:
    found = {}
    for folder in folders(load(str(yard.place)).manifest):
        facts = os.stat(folder.path)
        found[os.path.relpath(folder.path, yard.folder)] = (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode))
    return found


def test_each_user_gets_its_own_and_no_other(yard: Yard) -> None:
    yard.generate(yard.full())
    make_folders(load(str(yard.place)).manifest)
    assert owners(yard) == {
        "state": (0, 0, 0o755),
        "state/daemon": (65530, 65530, 0o750),
        "state/web": (65531, 65530, 0o750),
        "state/runner": (65532, 65532, 0o750),
        "state/runner/work": (65532, 65532, 0o750),
        "state/runner/work/hpcg": (65532, 65532, 0o750),
        "state/owner": (0, 65532, 0o750),
        "run": (0, 0, 0o755),
        "run/snapshot": (65530, 65530, 0o750),
        "run/runner": (65532, 65532, 0o750),
        "run/owner": (0, 65532, 0o750),
        "results": (0, 0, 0o755),
    }


def test_monitoring_has_no_directory_of_stress(yard: Yard) -> None:
    yard.generate(yard.monitoring())
    manifest = load(str(yard.place)).manifest
    make_folders(manifest)
    assert set(owners(yard)) == {"state", "state/daemon", "state/web", "run", "run/snapshot"}
    assert tmpfiles(manifest) == (
        "# Directories of the containers of nodeproof, which each boot takes away.\n"
        f"d {yard.folder}/run 0755 0 0 -\nd {yard.folder}/run/snapshot 0750 65530 65530 -\n"
    )


def test_what_another_service_owns_stays_its_own(yard: Yard) -> None:
    state = yard.folder / "state"
    state.mkdir(mode=0o700)
    os.chown(state, 4711, 4712)
    yard.generate(yard.host())
    deployment = load(str(yard.place))
    assert [change.action for change in install(Installation(deployment=deployment), only_plan=True)][:3] == ["create"] * 3
    make_folders(deployment.manifest)
    facts = state.stat()
    assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == (4711, 4712, 0o700)
    assert ((state / "stress" / "work" / "hpcg").stat().st_uid, (state / "stress").stat().st_gid) == (4711, 4712)


def test_a_link_that_a_containers_user_left_leads_nowhere(yard: Yard) -> None:
    yard.generate(yard.full())
    manifest = load(str(yard.place)).manifest
    make_folders(manifest)
    victim = yard.folder / "victim"
    (victim / "hpcg").mkdir(parents=True)
    work = yard.folder / "state" / "runner" / "work"
    (work / "hpcg").rmdir()
    work.rmdir()
    work.symlink_to(victim)
    with pytest.raises(DeployError, match="a link or a file is in its way"):
        make_folders(manifest)
    assert (victim / "hpcg").stat().st_uid == 0
    with pytest.raises(DeployError, match="a link or a file is in its way"):
        install(Installation(deployment=load(str(yard.place))), only_plan=True)


def test_the_adapter_is_installed_with_its_manifests(yard: Yard) -> None:
    yard.generate(yard.host())
    wanted = Installation(deployment=load(str(yard.place)), root=str(yard.folder / "stage"))
    planned = install(wanted, only_plan=True)
    assert not (yard.folder / "stage").exists()
    assert install(wanted) == planned
    plugin = yard.folder / "stage" / str(yard.folder / "plugin").lstrip("/")
    assert sorted(str(path.relative_to(plugin)) for path in plugin.rglob("*") if path.is_file()) == [
        "benchmark_check.sh",
        "manifests/cpu-build-manifest.json",
        "manifests/stress-deployment-manifest.json",
    ]
    assert os.access(plugin / "benchmark_check.sh", os.X_OK)
    assert install(wanted) == []


def test_what_is_there_and_another_goes_only_by_force(yard: Yard) -> None:
    yard.generate(yard.host())
    stage = str(yard.folder / "stage")
    install(Installation(deployment=load(str(yard.place)), root=stage))
    adapter = Path(f"{stage}{yard.folder}/plugin/benchmark_check.sh")
    adapter.write_text("# validated by hand\n")
    with pytest.raises(DeployError, match=r"benchmark_check\.sh is there and is another; replace it with --force"):
        install(Installation(deployment=load(str(yard.place)), root=stage))
    assert adapter.read_text() == "# validated by hand\n"
    install(Installation(deployment=load(str(yard.place)), root=stage, force=True))
    assert "CATMONITOR_STRESS_DESCRIBE_PROTOCOL=1" in adapter.read_text()
    adapter.unlink()
    adapter.symlink_to("/etc/passwd")
    with pytest.raises(DeployError, match="is a link; nothing is installed through one"):
        install(Installation(deployment=load(str(yard.place)), root=stage, force=True))


def test_a_failure_takes_files_back(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.generate(yard.host())
    stage = str(yard.folder / "stage")
    real = layout.store_file  # type: ignore[attr-defined]  # the one that the module uses
    adapter = Path(f"{stage}{yard.folder}/plugin/benchmark_check.sh")
    adapter.parent.mkdir(parents=True)
    adapter.write_text("old")

    def full(path: str, data: bytes, *, mode: int = 0o640) -> None:
        if path.endswith("cpu-build-manifest.json"):
            raise WriteError(path, "No space left on device")
        real(path, data, mode=mode)

    monkeypatch.setattr(layout, "store_file", full)
    with pytest.raises(WriteError):
        install(Installation(deployment=load(str(yard.place)), root=stage, force=True))
    assert adapter.read_text() == "old"
    assert list(adapter.parent.joinpath("manifests").glob("*.json")) == []


def test_assets_are_copied_without_links(yard: Yard) -> None:
    yard.generate(yard.host())
    source = yard.folder / "built"
    (source / "stream").mkdir(parents=True)
    (source / "stream" / "stream_omp").write_text("x")
    (source / "stream" / "stream_omp").chmod(0o755)
    stage = str(yard.folder / "stage")
    install(Installation(deployment=load(str(yard.place)), root=stage, runtime_source=str(source)))
    copied = Path(f"{stage}{yard.folder}/plugin/runtime/stream/stream_omp")
    assert (copied.read_text(), stat.S_IMODE(copied.stat().st_mode)) == ("x", 0o755)
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(DeployError, match="is a link, a device or larger"):
        install(Installation(deployment=load(str(yard.place)), root=stage, runtime_source=str(source)))
    with pytest.raises(DeployError, match="expected a directory"):
        install(Installation(deployment=load(str(yard.place)), root=stage, runtime_source="/none"))


def test_the_command_shows_and_then_does(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    yard.generate(yard.monitoring())
    argv = ["deploy", "install", "--deployment", str(yard.place), "--into", str(yard.folder / "stage")]
    assert main([*argv, "--plan"], {}) == 0
    assert "/etc/tmpfiles.d/nodeproof-deploy.conf" in capsys.readouterr().out
    assert main([*argv, "-o", "json"], {}) == 0
    assert main(argv, {}) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert main(["deploy", "install", "--deployment", str(yard.place), "--into", "stage"], {}) == 2
