"""NPU Burn's image: the administrator's source between two approved base images (stress.md 8.4).

The builder base has CANN's toolkit, torch_npu and pip; it makes one wheel and installs it, offline, into an overlay. The runtime
base has what is needed to run and neither compilers nor vLLM; the final image is that base with the overlay on top. Nothing here
starts a container or a burn: devices, driver and ABI are proved on the node.
"""

import os
import re
import shlex
from collections.abc import Iterator

import msgspec

from nodeproof.operate.assets.manifest import sha256_of
from nodeproof.operate.deploy.inputs import check_path
from nodeproof.operate.images.build import Recipe
from nodeproof.operate.images.burn_source import BurnSource, check_source, read_metadata
from nodeproof.operate.images.context import Context
from nodeproof.operate.images.problems import ImageError
from nodeproof.operate.images.templates import template

__all__ = ["PROFILES", "BurnOrder", "npu_burn"]

PROFILES = ("none", "a2-cann83")
_SCHEMA = "6"
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:-]{0,200}\.(deb|rpm)", re.ASCII)


class BurnOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the administrator has."""

    source: str
    metadata: str
    profile: str = "none"
    patch: str = ""
    builder_env: str = ""
    runtime_env: str = ""
    driver_lib_dir: str = ""
    packages: tuple[str, ...] = ()
    """RPMs or DEBs with ``lspci`` and what it needs."""


def npu_burn(order: BurnOrder) -> Recipe:
    """Raises ImageError for a source, a patch or a package that cannot be believed."""
    fault = next(_faults(order), "")
    if fault:
        raise ImageError(fault)
    source = read_metadata(order.metadata)
    check_source(order.source, source)

    def fill(context: Context) -> str:
        for name in source.files:
            context.copy(os.path.join(order.source, name), f"source/{name}")
        for name in ("npu-builder.sh", "npu-runtime.sh", "npu_preflight.py.txt", "cann-env.sh"):
            context.write(f"tools/{name.removesuffix('.txt')}", template(name))
        for path in order.packages:
            context.copy(path, f"packages/{os.path.basename(path)}")
        if order.patch:
            context.copy(order.patch, "tools/compat.patch")
        if order.driver_lib_dir:
            _driver(context, order.driver_lib_dir)
        return _containerfile(order)

    return Recipe(
        kind="npu-burn",
        schema_version=_SCHEMA,
        fill=fill,
        benchmarks=("npu_burn",),
        details=_details(order, source),
        needs_network=not order.packages,
    )


def _faults(order: BurnOrder) -> Iterator[str]:
    if order.profile not in PROFILES:
        yield f"--compat-profile {order.profile[:40]!r}: expected one of {', '.join(PROFILES)}"
    if order.profile == "none" and order.patch:
        yield "--patch goes with a --compat-profile other than none: a patched source must say what it is patched for"
    if order.profile != "none" and not order.patch:
        yield f"--compat-profile {order.profile} takes --patch: none comes with nodeproof"
    for flag, path in (
        ("--builder-ascend-env-script", order.builder_env),
        ("--runtime-ascend-env-script", order.runtime_env),
        ("--build-driver-lib-dir", order.driver_lib_dir),
    ):
        if path:
            yield from check_path(flag, path)
    yield from _file_faults(order)


def _file_faults(order: BurnOrder) -> Iterator[str]:
    for path in (*order.packages, *([order.patch] if order.patch else [])):
        if not os.path.isfile(path):
            yield f"{path}: there is no such file"
    for path in order.packages:
        if not _PACKAGE.fullmatch(os.path.basename(path)):
            yield f"--pciutils-package {path}: expected a DEB or an RPM"
    names = [os.path.basename(path) for path in order.packages]
    if len(set(names)) != len(names):
        yield "--pciutils-package: one file is named twice"


def _driver(context: Context, folder: str) -> None:
    """Libraries of the driver, links resolved: the builder wants their names, and nothing of them goes further."""
    try:
        names = sorted(name for name in os.listdir(folder) if ".so" in name)
    except OSError as error:
        raise ImageError(f"--build-driver-lib-dir {folder}: {os.strerror(error.errno or 0)}") from None
    if not names:
        raise ImageError(f"--build-driver-lib-dir {folder}: it holds no library")
    for name in names:
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.isfile(path):
            context.copy(path, f"driver/{name}")


def _containerfile(order: BurnOrder) -> str:
    driver = ""
    if order.driver_lib_dir:
        driver = (
            "# For this stage alone: the final image gets the driver from the node.\nCOPY driver /usr/local/Ascend/driver/lib64\n"
        )
    packages = "COPY packages /packages\n" if order.packages else ""
    return (
        template("npu-burn.Containerfile")
        .replace("@DRIVER@", driver)
        .replace("@PACKAGES@", packages)
        .replace("@BUILDER_ENV@", shlex.quote(order.builder_env))
        .replace("@RUNTIME_ENV@", shlex.quote(order.runtime_env))
    )


def _details(order: BurnOrder, source: BurnSource) -> dict[str, object]:
    return {
        "source": {
            "name": source.name,
            "revision": source.revision,
            "licence": source.licence,
            "files": len(source.files),
            "metadata_sha256": sha256_of(order.metadata),
        },
        "compat_profile": order.profile,
        "patch_sha256": sha256_of(order.patch) if order.patch else "",
        "pciutils": {os.path.basename(path): sha256_of(path) for path in order.packages} or "base image, or its package manager",
        "driver_libraries_in_final_image": False,
        "npu_workload_run": False,
    }
