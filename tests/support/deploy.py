"""What tests of deployments share: inputs of each kind, an Ascend host, an engine that keeps containers in a file."""

import json
import stat
import sys
from pathlib import Path

import msgspec

from nodeproof.clock import SystemClock
from nodeproof.host.commands import HostCommands
from nodeproof.operate.assets import manifest as assets
from nodeproof.operate.assets.manifest import BuiltFile, BuiltItem, Manifest, Toolchain, sha256_of
from nodeproof.operate.deploy.generate import Generated, generate
from nodeproof.operate.deploy.inputs import CpuInputs, Images, Inputs, NpuInputs

__all__ = ["ENVIRON", "HPL_DAT", "PROCESSORS", "FakeEngine", "Yard", "fake_engine"]

ENVIRON = {"HOME": "/nonexistent"}
PROCESSORS = 4
HPL_DAT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
1000         Ns
1            # of NBs
128          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
"""


class Yard:
    """A folder with built assets, manifests of images, and a host root with an Ascend driver."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "deployment"

    def assets(self, *names: str) -> str:
        """A manifest of ``assets build`` with its files."""
        root = self.folder / "plugin" / "runtime"
        items = {}
        for name in names or ("stream", "hpl", "hpcg"):
            binary, config = {
                "stream": ("stream/stream_omp", ""),
                "hpl": ("hpl/xhpl", "hpl/HPL.dat"),
                "hpcg": ("hpcg/xhpcg", ""),
            }[name]
            items[name] = BuiltItem(
                binary=self._built(root / binary, "#!/bin/sh\n"),
                config=self._built(root / config, HPL_DAT) if config else None,
                source="/src",
                source_sha256="0" * 64,
                flags="-O3",
            )
        path = str(self.folder / "plugin" / "manifests" / "cpu-build-manifest.json")
        told = Manifest(
            generated_at="2026-01-01T00:00:00Z",
            architecture="x86_64",
            output_root=str(root),
            build_root="/build",
            last_selection=list(items),
            toolchain=Toolchain(),
            benchmarks=items,
        )
        assets.save(path, told)
        return path

    def image(self, name: str, image_id: str = "1" * 64, **more: object) -> str:
        """A manifest of ``assets image``."""
        path = self.folder / f"{name.replace('/', '-').replace(':', '-')}.json"
        told = {"schema_version": 1, "kind": "cpu-runner", "generated_at": "2026-01-01T00:00:00Z", "image": name}
        path.write_text(json.dumps({**told, "image_id": image_id, "benchmarks": ["stream", "hpl", "hpcg"], **more}))
        return str(path)

    def ascend(self, nodes: tuple[int, ...] = (2, 5)) -> dict[str, str]:
        """A host with a driver, and as many accelerators as ``nodes``."""
        root = self.folder / "host"
        for path in ("usr/local/Ascend/driver/lib64", "usr/local/dcmi", "usr/local/bin", "etc"):
            (root / path).mkdir(parents=True, exist_ok=True)
        for path in ("usr/local/Ascend/driver/version.info", "etc/ascend_install.info", "usr/local/bin/npu-smi"):
            (root / path).touch()
        dev = self.folder / "dev"
        dev.mkdir(exist_ok=True)
        for device in (*(f"davinci{number}" for number in nodes), "davinci_manager", "devmm_svm", "hisi_hdc"):
            (dev / device).touch()
        return {"npu_host_root": str(root), "npu_device_root": str(dev)}

    def npu(self, **changes: object) -> NpuInputs:
        """Sound inputs of NPU Burn."""
        plain = NpuInputs(
            container="burner",
            image="site/burn:a2",
            device="0,1",
            run_case="matmul",
            generation="A2",
            output_dir=str(self.folder / "results"),
        )
        return msgspec.structs.replace(plain, **changes)

    def inputs(self, **changes: object) -> Inputs:
        """Nothing but places."""
        plain = Inputs(
            output_dir=str(self.place),
            program=str(Path(sys.executable).parent / "nodeproof"),
            plugin_root=str(self.folder / "plugin"),
            state_dir=str(self.folder / "state"),
            run_dir=str(self.folder / "run"),
        )
        return msgspec.structs.replace(plain, **changes)

    def host(self, **changes: object) -> Inputs:
        """CPU items on the host."""
        return self.inputs(cpu=CpuInputs(manifest=self.assets(), **changes))  # type: ignore[arg-type]  # the keys are fields

    def monitoring(self, **changes: object) -> Inputs:
        """Containers without stress."""
        return self.inputs(images=Images(control="site/control:1"), **changes)

    def cpu_stress(self, **changes: object) -> Inputs:
        """Containers with the CPU runner."""
        images = Images(control="site/control:1", runner="site/cpu:1", runner_manifest=self.image("site/cpu:1"))
        return self.inputs(backend="unix", images=images, **changes)

    def full(self, **changes: object) -> Inputs:
        """CPU runner and NPU Burn."""
        return self.cpu_stress(npu=self.npu(), **self.ascend(), **changes)

    def generate(self, inputs: Inputs) -> Generated:
        """With the real shell."""
        commands = HostCommands()
        try:
            return generate(inputs, commands, SystemClock(), PROCESSORS, ENVIRON)
        finally:
            commands.close()

    def files(self) -> dict[str, str]:
        """What was generated."""
        return {path.name: path.read_text() for path in sorted(self.place.iterdir())}

    @staticmethod
    def _built(path: Path, text: str) -> BuiltFile:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return BuiltFile(path=str(path), sha256=sha256_of(str(path)))


_ENGINE = """\
#!{python}
import json, sys
place = {place!r}
try:
    state = json.load(open(place))
except FileNotFoundError:
    state = {{"images": {{}}, "containers": {{}}, "log": [], "fail": {{}}}}
words = sys.argv[1:]
state["log"].append(words)
def end(code, out="", err=""):
    json.dump(state, open(place, "w"))
    print(out, end="")
    print(err, end="", file=sys.stderr)
    sys.exit(code)
if words[0] in state["fail"]:
    end(125, err=state["fail"][words[0]] + "\\n")
if words[0] in ("--version", "info"):
    end(0, "Docker version 0.0-fake\\n")
if words[:2] == ["image", "inspect"]:
    found = state["images"].get(words[2])
    if found is None:
        end(1, "[]\\n", "Error: No such image: " + words[2] + "\\n")
    end(0, json.dumps([{{"Id": "sha256:" + found["id"], "Config": {{"Labels": found.get("labels")}}}}]))
if words[:2] == ["container", "inspect"]:
    found = state["containers"].get(words[2])
    if found is None:
        end(1, "[]\\n", "Error: No such container: " + words[2] + "\\n")
    status = "running" if found["running"] else "exited"
    told = {{"Running": found["running"], "Status": status, "ExitCode": found.get("exit", 0)}}
    end(0, json.dumps([{{"Id": words[2], "State": told, "Image": "sha256:" + found["image"],
                        "Config": {{"Labels": found["labels"]}}}}]))
if words[0] == "create":
    name = words[words.index("--name") + 1]
    if name in state["containers"]:
        end(125, err="Conflict. The container name is already in use\\n")
    pairs = [words[n + 1].split("=", 1) for n, word in enumerate(words) if word == "--label"]
    image = next(found["id"] for name, found in state["images"].items() if found["id"] in words or name in words)
    state["containers"][name] = {{"running": False, "image": image, "labels": dict(pairs), "words": words}}
    end(0, name + "\\n")
if words[0] == "rename":
    state["containers"][words[2]] = state["containers"].pop(words[1])
    end(0)
if words[0] in ("start", "stop", "rm", "exec", "logs"):
    name = words[-1] if words[0] != "exec" else words[1]
    if name not in state["containers"]:
        end(1, err="Error: No such container: " + name + "\\n")
    if words[0] == "start":
        state["containers"][name]["running"] = True
    elif words[0] == "stop":
        state["containers"][name]["running"] = False
    elif words[0] == "rm":
        del state["containers"][name]
    elif words[0] == "exec":
        end(state.get("exec", {{}}).get(name, 0), state.get("says", {{}}).get(" ".join(words[2:]), ""))
    end(0)
end(125, err="unknown words " + " ".join(words) + "\\n")
"""


class FakeEngine:
    """The program, and what it keeps."""

    def __init__(self, folder: Path) -> None:
        self.client = folder / "docker"
        self._place = folder / "engine.json"
        self.client.write_text(_ENGINE.format(python=sys.executable, place=str(self._place)))
        self.client.chmod(0o755)
        self.change(images={}, containers={}, log=[], fail={})

    def change(self, **state: object) -> None:
        """Parts of what it keeps."""
        self._place.write_text(json.dumps({**self.state, **state}))

    @property
    def state(self) -> dict[str, dict[str, dict[str, object]]]:
        """All that it keeps."""
        return json.loads(self._place.read_text()) if self._place.exists() else {}

    @property
    def log(self) -> list[list[str]]:
        """Every call, in order."""
        return self.state["log"]  # type: ignore[return-value]  # the one list among them

    def changes(self) -> list[str]:
        """Calls that change something: verb and container."""
        verbs = {"create", "start", "stop", "rm", "rename"}
        return [f"{words[0]} {_name(words)}" for words in self.log if words[0] in verbs]


def fake_engine(folder: Path) -> FakeEngine:
    """An engine in place of Docker; its images and containers are words in a file."""
    return FakeEngine(folder)


def _name(words: list[str]) -> str:
    return words[words.index("--name") + 1] if words[0] == "create" else words[-1]
