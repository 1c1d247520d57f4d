"""Building an image: check everything, fill a context, build, read the labels back, and only then write the manifest.

Base images are local ones: nothing is pulled. Proxies of the environment go into the build by name; no value of theirs is written
anywhere.
"""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nodeproof import __version__
from nodeproof.clock import Clock, rfc3339
from nodeproof.host.atomic import make_directory, store_file
from nodeproof.operate.deploy.engine import Engine, Image
from nodeproof.operate.deploy.image_manifest import ImageManifest
from nodeproof.operate.deploy.inputs import check_image
from nodeproof.operate.deploy.manifest import sha256
from nodeproof.operate.images.context import Context
from nodeproof.operate.images.problems import ImageError

__all__ = ["LABEL_INPUTS", "LABEL_KIND", "LABEL_VERSION", "BuildOrder", "Recipe", "build", "labels_text"]

LABEL_KIND = "io.nodeproof.image"
LABEL_VERSION = "io.nodeproof.version"
LABEL_INPUTS = "io.nodeproof.inputs-sha256"
_NETWORKS = ("", "default", "host", "none")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy", "ALL_PROXY")
_BUILD_S = 4 * 3600.0
_CONTAINERFILE = "Containerfile"


class BuildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, whatever the image."""

    image: str
    bases: Mapping[str, str]
    """Build argument -> name of a local image."""
    build_root: str
    manifest: str
    network: str = ""
    build_options: tuple[str, ...] = ()
    """Further words of the engine's ``build``."""
    force: bool = False


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What is special about one kind of image."""

    kind: str
    schema_version: int | str = 1
    fill: Callable[[Context], str]
    """Fill the context; the container file, with ``@LABELS@`` where labels go. Raises ImageError."""
    benchmarks: tuple[str, ...] = ()
    hpl_processes: tuple[int, ...] = ()
    details: Mapping[str, object] = {}
    needs_network: bool = True
    """False = whatever is needed is in the context, so the build has none unless told otherwise."""


def build(order: BuildOrder, recipe: Recipe, engine: Engine, clock: Clock, environ: Mapping[str, str]) -> ImageManifest:
    """Build the image and write its manifest. Raises ImageError or DeployError, and then no manifest is written."""
    bases = _check(order, engine)
    make_directory(order.build_root)
    with tempfile.TemporaryDirectory(prefix=f"{recipe.kind}-", dir=order.build_root) as folder:
        context = Context(folder)
        text = recipe.fill(context)
        inputs = sha256(msgspec.json.encode([text, sorted(context.digests.items()), sorted(_ids(bases).items())]))
        labels = {LABEL_KIND: recipe.kind, LABEL_VERSION: __version__, LABEL_INPUTS: inputs}
        context.write(_CONTAINERFILE, text.replace("@LABELS@", labels_text(labels)))
        proxies = [name for name in _PROXIES if environ.get(name)]
        words = _words(order, recipe, folder, proxies, is_podman=os.path.basename(engine.client).startswith("podman"))
        engine.run(*words, deadline_s=_BUILD_S)
        made = _read_back(order, labels, bases, engine)
        manifest = ImageManifest(
            schema_version=recipe.schema_version,
            kind=recipe.kind,
            generated_at=rfc3339(clock.now().wall_s),
            image=order.image,
            image_id=made.id,
            benchmarks=list(recipe.benchmarks),
            hpl_processes=list(recipe.hpl_processes),
            details={
                "generator": f"nodeproof {__version__}",
                "engine": engine.version(),
                "bases": {name: {"image": order.bases[name], "id": image.id} for name, image in bases.items()},
                "build_network": _network(order, recipe),
                "proxies": proxies,
                "labels": labels,
                "files": context.digests,
                **recipe.details,
            },
        )
    store_file(order.manifest, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    return manifest


def labels_text(labels: Mapping[str, str]) -> str:
    """``LABEL`` lines; names and values are ours."""
    return "\n".join(f'LABEL {name}="{value}"' for name, value in labels.items())


def _check(order: BuildOrder, engine: Engine) -> dict[str, Image]:
    """Base images by argument. Raises ImageError."""
    faults = list(check_image("--image", order.image))
    if order.network not in _NETWORKS:
        faults.append(f"--build-network {order.network[:40]!r}: expected default, host or none")
    for flag, path in (("--manifest", order.manifest), ("--build-root", order.build_root)):
        if not path.startswith("/"):
            faults.append(f"{flag} {path!r}: expected an absolute path")
    if faults:
        raise ImageError(faults[0])
    if not order.force and os.path.exists(order.manifest):
        raise ImageError(f"{order.manifest} is there already; build another image with --force")
    bases = {}
    for name, base in order.bases.items():
        fault = next(check_image(f"base image {name}", base), "")
        found = None if fault else engine.image(base)
        if found is None:
            raise ImageError(fault or f"base image {base} is not here; nothing is pulled: load the one that was approved")
        bases[name] = found
    return bases


def _words(order: BuildOrder, recipe: Recipe, folder: str, proxies: Sequence[str], *, is_podman: bool) -> list[str]:
    words = ["build", "--pull=never" if is_podman else "--pull=false", "--tag", order.image]
    words += ["--file", os.path.join(folder, _CONTAINERFILE)]
    for name, base in order.bases.items():
        words += ["--build-arg", f"{name}={base}"]
    for name in proxies:  # by name: the engine's client takes the value from its environment
        words += ["--build-arg", name]
    network = _network(order, recipe)
    words += ["--network", network] if network != "default" else []
    return [*words, *order.build_options, folder]


def _network(order: BuildOrder, recipe: Recipe) -> str:
    return order.network or ("default" if recipe.needs_network else "none")


def _read_back(order: BuildOrder, labels: Mapping[str, str], bases: Mapping[str, Image], engine: Engine) -> Image:
    """The image that bears the name now. Raises ImageError when it is not the one that was meant."""
    made = engine.image(order.image)
    if made is None:
        raise ImageError(f"the engine built without a word against it, and there is no image {order.image}")
    wrong = [name for name, value in labels.items() if made.labels.get(name) != value]
    if wrong:
        raise ImageError(
            f"image {order.image} has not the labels that were given to it ({', '.join(wrong)}); no manifest is written"
        )
    for name, image in bases.items():
        now = engine.image(order.bases[name])
        if now is None or now.id != image.id:
            raise ImageError(f"base image {order.bases[name]} changed while {order.image} was built; build it anew")
    return made


def _ids(bases: Mapping[str, Image]) -> dict[str, str]:
    return {name: image.id for name, image in bases.items()}
