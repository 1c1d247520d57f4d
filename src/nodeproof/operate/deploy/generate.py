"""``deploy generate``: everything is worked out first, then written into a new directory, which takes its place in one step."""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping

import msgspec

from nodeproof import __version__
from nodeproof.clock import Clock, rfc3339
from nodeproof.config.loader import load_text
from nodeproof.errors import CommandError, ConfigError
from nodeproof.host.atomic import DIRECTORY_MODE, make_directory, store_file, sync_directory, write_error
from nodeproof.host.commands import Commands
from nodeproof.host.exchange import exchange
from nodeproof.operate.assets.manifest import Manifest, sha256_of
from nodeproof.operate.deploy import compose, configuration, services
from nodeproof.operate.deploy.adapter import render_adapter
from nodeproof.operate.deploy.chosen import ChosenSizes, choose, grids_of, load_assets
from nodeproof.operate.deploy.image_manifest import ImageManifest, load_image
from nodeproof.operate.deploy.inputs import CPU_ITEMS, Inputs, check
from nodeproof.operate.deploy.manifest import NAME, DeploymentManifest, ImageRecord, sha256
from nodeproof.operate.deploy.npu_host import NpuHost, discover
from nodeproof.operate.deploy.problems import DeployError

__all__ = ["FILES", "Generated", "check_shell", "generate"]

FILES = {
    "benchmark_check.sh": 0o750,
    "nodeproof.yaml": 0o640,
    "nodeproof-runner.yaml": 0o640,
    "nodeproof-owner.yaml": 0o640,
    "compose.yaml": 0o640,
    "compose.stress.yaml": 0o640,
    NAME: 0o640,
}
"""Everything that a directory of a deployment may hold."""
_CONTAINER_MODES = {
    "nodeproof.yaml": 0o644,
    "nodeproof-runner.yaml": 0o644,
    "nodeproof-owner.yaml": 0o644,
    "benchmark_check.sh": 0o755,
}
"""Where containers read them, as users that the host does not know."""
_BASH_S = 10.0
_PROJECT = "nodeproof"


class Generated(msgspec.Struct, frozen=True, kw_only=True):
    """What a call of :func:`generate` wrote."""

    directory: str
    manifest: DeploymentManifest


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What was read and chosen before anything is rendered."""

    items: list[str]
    assets: Manifest | None
    sizes: ChosenSizes
    runner: ImageManifest | None
    burn: ImageManifest | None
    ascend: NpuHost | None


def generate(inputs: Inputs, commands: Commands, clock: Clock, processors: int, environ: Mapping[str, str]) -> Generated:
    """All files of a deployment. Raises DeployError or WriteError, and then the directory is as it was."""
    check(inputs)
    _check_place(inputs)
    known = _know(inputs, processors)
    texts = _texts(inputs, known)
    _prove(texts, commands, environ)
    manifest = _describe(inputs, known, texts, clock)
    texts[NAME] = msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode() + "\n"
    _put(inputs, texts)
    return Generated(directory=inputs.output_dir, manifest=manifest)


# What is known


def _know(inputs: Inputs, processors: int) -> _Known:
    assets = load_assets(inputs.cpu.manifest) if inputs.cpu.manifest else None
    runner = burn = None
    if inputs.images.runner:
        runner = load_image("--cpu-runner-image", inputs.images.runner, "--cpu-runner-manifest", inputs.images.runner_manifest)
    if inputs.npu.manifest:
        burn = load_image("--npu-image", inputs.npu.image, "--npu-manifest", inputs.npu.manifest)
    items = list(assets.benchmarks) if assets is not None else list(runner.benchmarks) if runner is not None else []
    items = [name for name in CPU_ITEMS if name in items]
    if (assets is not None or runner is not None) and not items:
        raise DeployError("the manifest names none of stream, hpl and hpcg: there is nothing to run")
    config = assets.benchmarks["hpl"].config if assets is not None and "hpl" in assets.benchmarks else None
    grids = grids_of(config.path) if config is not None else list(runner.hpl_processes) if runner is not None else []
    return _Known(
        items=[*items, *(["npu_burn"] if inputs.npu.is_given else [])],
        assets=assets,
        sizes=choose(inputs.cpu, grids, processors),
        runner=runner,
        burn=burn,
        ascend=discover(inputs.npu_host_root, inputs.npu_device_root) if inputs.npu.is_given and inputs.in_containers else None,
    )


def _check_place(inputs: Inputs) -> None:
    """Nothing of somebody else's is in the way, and what is ours only goes by force."""
    place = inputs.output_dir
    try:
        facts = os.lstat(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DeployError(f"--output-dir {place}: {os.strerror(error.errno or 0)}") from None
    if not stat.S_ISDIR(facts.st_mode):
        raise DeployError(f"--output-dir {place} is no directory of its own (a link is none); name another")
    names = set(os.listdir(place))
    foreign = sorted(names - set(FILES))
    if foreign:
        raise DeployError(
            f"--output-dir {place} holds {foreign[0][:80]!r}, which is not of a deployment; name a directory of its own"
        )
    if names and not inputs.force:
        raise DeployError(f"--output-dir {place} holds a deployment already; replace it with --force")


# What is written


def _texts(inputs: Inputs, known: _Known) -> dict[str, str]:
    texts: dict[str, str] = {}
    hpcg = f"{inputs.state_dir}/stress/work/hpcg"
    if inputs.in_containers:
        texts["nodeproof.yaml"] = configuration.control_config(inputs)
        title = (
            "Daemon and page of this node. Made by nodeproof deploy generate; started by nodeproof deploy up, or\n"
            "docker compose -f compose.yaml up -d. Nothing of stress stands here."
        )
        texts["compose.yaml"] = compose.render(title, _PROJECT, services.base(inputs, inputs.output_dir))
        if known.items:
            texts |= _stress_texts(inputs, known)
    elif known.items:
        report = inputs.report_path or f"{inputs.state_dir}/stress/stress-latest.json"
        texts["nodeproof.yaml"] = configuration.host_config(inputs, known.items, report, hpcg)
    if known.items and (not inputs.in_containers or "npu_burn" in known.items):
        texts["benchmark_check.sh"] = render_adapter(inputs, known.assets, known.sizes, hpcg)
    return texts


def _stress_texts(inputs: Inputs, known: _Known) -> dict[str, str]:
    cpu = [name for name in known.items if name != "npu_burn"]
    found = list(services.override(inputs, inputs.output_dir, known.items))
    if known.ascend is not None:
        found.insert(0, services.ascend_daemon(known.ascend))
    title = "What stress items add to compose.yaml beside it:\ndocker compose -f compose.yaml -f compose.stress.yaml up -d"
    texts = {"compose.stress.yaml": compose.render(title, _PROJECT, found)}
    if cpu:
        texts["nodeproof-runner.yaml"] = configuration.runner_config(
            inputs, cpu, known.sizes, with_hpl_dat=known.runner is not None and bool(known.runner.hpl_processes)
        )
    if "npu_burn" in known.items:
        texts["nodeproof-owner.yaml"] = configuration.owner_config(inputs, known.items)
    return texts


def _prove(texts: Mapping[str, str], commands: Commands, environ: Mapping[str, str]) -> None:
    """What was rendered is what others will understand: the shell, our own configuration, and compose. Raises DeployError."""
    for name, text in texts.items():
        if name.startswith("compose"):
            compose.read(name, text.encode())
        elif name.endswith(".yaml"):
            try:
                load_text(name, text.encode(), environ)
            except ConfigError as error:
                raise DeployError(f"what was generated is no configuration: {error}") from None
    if "benchmark_check.sh" in texts:
        check_shell(texts["benchmark_check.sh"], commands)


def check_shell(text: str, commands: Commands) -> None:
    """``bash -n``. Raises DeployError for what is no script."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="nodeproof-", suffix=".sh", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            result = commands.run(["bash", "-n", file.name], deadline_s=_BASH_S)
    except CommandError as error:
        raise DeployError(f"the adapter could not be checked: {error}") from None
    except OSError as error:
        raise DeployError(f"the adapter could not be checked: {os.strerror(error.errno or 0)}") from None
    if result.exit_code:
        raise DeployError(f"the adapter is no script that bash understands: {result.first_error_line()}")


def _describe(inputs: Inputs, known: _Known, texts: Mapping[str, str], clock: Clock) -> DeploymentManifest:
    images = {"control": ImageRecord(name=inputs.images.control)} if inputs.in_containers else {}
    if known.runner is not None:
        images["runner"] = ImageRecord(name=inputs.images.runner, id=known.runner.image_id)
    if inputs.npu.is_given:
        images["npu-burn"] = ImageRecord(name=inputs.npu.image, id=known.burn.image_id if known.burn is not None else "")
    read = [inputs.cpu.manifest, inputs.images.runner_manifest, inputs.npu.manifest]
    profile = "host"
    if inputs.in_containers:
        profile = "ascend" if inputs.npu.is_given else "cpu-stress" if known.items else "monitoring"
    return DeploymentManifest(
        generated_at=rfc3339(clock.now().wall_s),
        generator=f"nodeproof {__version__}",
        architecture=os.uname().machine,
        profile=profile,
        items=known.items,
        project=_PROJECT,
        files={name: sha256(text.encode()) for name, text in sorted(texts.items())},
        inputs={path: sha256_of(path) for path in read if path},
        images=images,
        settings=msgspec.structs.replace(inputs, force=False),
        sizes=msgspec.to_builtins(known.sizes) if known.items else {},
    )


def _put(inputs: Inputs, texts: Mapping[str, str]) -> None:
    """Into a new directory beside, which then takes the place. Raises WriteError."""
    place = inputs.output_dir.rstrip("/")
    parent = os.path.dirname(place)
    make_directory(parent)
    modes = FILES | (_CONTAINER_MODES if inputs.in_containers else {})
    fresh = ""
    try:
        fresh = tempfile.mkdtemp(prefix=f".{os.path.basename(place)}.", dir=parent)
        os.chmod(fresh, 0o755 if inputs.in_containers else DIRECTORY_MODE)
        for name, text in texts.items():
            store_file(os.path.join(fresh, name), text.encode(), mode=modes[name])
        if os.path.isdir(place):
            exchange(fresh, place)
        else:
            os.rename(fresh, place)
        sync_directory(parent)
    except OSError as error:
        raise write_error(place, error) from None
    finally:
        _forget(fresh)


def _forget(folder: str) -> None:
    """The new directory that was not used, or the old one whose place was taken."""
    with contextlib.suppress(OSError):
        if folder:
            shutil.rmtree(folder)
