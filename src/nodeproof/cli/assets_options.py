"""Options of ``nodeproof assets`` and of each thing that it does."""

import argparse
from collections.abc import Callable

from nodeproof.cli.deploy_options import add_engine
from nodeproof.cli.operate_options import Output, add_output

__all__ = ["Add", "Options", "add_assets"]

Options = argparse.Namespace
Add = Callable[[argparse.ArgumentParser], None]
_RUNTIME = "/opt/nodeproof-stress/runtime"
_MANIFESTS = "/opt/nodeproof-stress/manifests"
_KINDS = ("control", "cpu-runner", "npu-burn")


def _sources(group: Output) -> None:
    for name, what in (
        ("stream", "stream.c, a directory or an archive"),
        ("hpl", "a directory or an archive"),
        ("hpcg", "the same"),
    ):
        group.add_argument(f"--{name}-src", default="", metavar="PATH", help=f"source of {name.upper()}: {what}")
    for name, file in (("hpl", "HPL.dat"), ("hpcg", "hpcg.dat")):
        group.add_argument(f"--{name}-dat", default="", metavar="FILE", help=f"{file} to install (default: the source's own)")
    group.add_argument("--stream-array-size", type=int, default=80_000_000, metavar="N", help="(default: 80000000)")
    group.add_argument("--stream-ntimes", type=int, default=10, metavar="N", help="(default: 10)")
    group.add_argument("--jobs", type=int, default=0, metavar="N", help="at once (default: one a processor)")


def _output_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output-root", default=_RUNTIME, metavar="DIR", help=f"(default: {_RUNTIME})")


def _build(parser: argparse.ArgumentParser) -> None:
    _sources(parser)
    _output_root(parser)
    parser.add_argument(
        "--build-root",
        default="/var/tmp/nodeproof-stress-build",  # noqa: S108 - made with mode 0750, and locked
        metavar="DIR",
        help="kept between builds, so that one that was stopped goes on (default: /var/tmp/nodeproof-stress-build)",
    )
    for tool, path in (("cc", "gcc"), ("cxx", "g++"), ("mpicc", "mpicc"), ("mpicxx", "mpicxx"), ("mpirun", "mpirun")):
        parser.add_argument(f"--{tool}", default=f"/usr/bin/{path}", metavar="FILE", help=f"(default: /usr/bin/{path})")
    parser.add_argument(
        "--openblas-include", default="", metavar="DIR", help="directory of cblas.h (default: the compiler's own)"
    )
    parser.add_argument("--openblas-lib", default="", metavar="DIR", help="where libopenblas.so is (default: the linker's own)")
    parser.add_argument("--only", metavar="LIST", help="stream, hpl, hpcg with commas between them (default: all)")
    parser.add_argument("--skip", metavar="LIST", help="the same, to be left out; wins over --only")
    parser.add_argument("--force", action="store_true", help="replace what is installed already")
    add_output(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    _output_root(parser)
    parser.add_argument("--manifest", default="", metavar="FILE", help="(default: beside --output-root)")
    add_output(parser)


def _image(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(metavar="KIND", required=True)
    for kind, text, add in (
        ("control", "daemon, page and command line", _control),
        ("cpu-runner", "STREAM, HPL and HPCG with all that runs them", _cpu_runner),
        ("npu-burn", "NPU Burn out of the administrator's source, between approved base images", _npu_burn),
    ):
        one = kinds.add_parser(kind, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        one.set_defaults(kind=kind, parser=one)
        _common(one, kind)
        add(one)


def _common(parser: argparse.ArgumentParser, kind: str) -> None:
    parser.add_argument("--image", required=True, metavar="NAME", help="name of the image to build")
    manifest = f"{_MANIFESTS}/{kind}-image-manifest.json"
    parser.add_argument("--manifest", default=manifest, metavar="FILE", help=f"(default: {manifest})")
    parser.add_argument(
        "--build-root",
        default="/var/tmp/nodeproof-image-build",  # noqa: S108 - made with mode 0750
        metavar="DIR",
        help="(default: /var/tmp/nodeproof-image-build)",
    )
    parser.add_argument(
        "--build-network", default="", metavar="NAME", help="default, host or none (default: none if nothing is fetched)"
    )
    parser.add_argument(
        "--build-option", action="append", default=[], metavar="OPTION", help="a word of the engine's build; may be given again"
    )
    parser.add_argument("--force", action="store_true", help="replace the manifest that is there")
    add_engine(parser)
    add_output(parser)


def _control(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-image", required=True, metavar="NAME", help="local image with Python 3.11 or newer")
    parser.add_argument("--wheels", required=True, metavar="DIR", help="wheels of nodeproof and what it needs")
    parser.add_argument(
        "--engine-client", default="", metavar="FILE", help="static client of Docker, for a deployment with NPU Burn"
    )


def _cpu_runner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-image", required=True, metavar="NAME", help="local image of Debian with Python 3.11 or newer")
    parser.add_argument("--wheels", required=True, metavar="DIR", help="wheels of nodeproof and what it needs")
    _sources(parser)


def _npu_burn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-image", default="", metavar="NAME", help="one local image for both stages")
    parser.add_argument("--builder-base-image", default="", metavar="NAME", help="with CANN toolkit, torch_npu, TBE and pip")
    parser.add_argument(
        "--runtime-base-image", default="", metavar="NAME", help="with CANN runtime and torch_npu, without compilers"
    )
    parser.add_argument("--source", required=True, metavar="DIR", help="AscendNPUBurn, which does not come with nodeproof")
    parser.add_argument(
        "--source-metadata", required=True, metavar="FILE", help="JSON: schema_version 1, revision, licence, SHA-256 of each file"
    )
    parser.add_argument("--compat-profile", default="none", metavar="NAME", help="none (the default) or a2-cann83, with --patch")
    parser.add_argument("--patch", default="", metavar="FILE", help="the audited patch of the profile")
    parser.add_argument("--ascend-env-script", default="", metavar="FILE", help="of CANN, in both images (default: looked for)")
    parser.add_argument("--builder-ascend-env-script", default="", metavar="FILE", help="of CANN, in the builder's image")
    parser.add_argument("--runtime-ascend-env-script", default="", metavar="FILE", help="of CANN, in the runtime's image")
    parser.add_argument("--build-driver-lib-dir", default="", metavar="DIR", help="the driver's lib64, for the builder alone")
    parser.add_argument(
        "--pciutils-package",
        action="append",
        default=[],
        metavar="FILE",
        help="RPM or DEB with lspci or what it needs; may be given again",
    )


_ACTIONS: dict[str, tuple[str, Add, str]] = {
    "build": (
        "make STREAM, HPL and HPCG, and install them",
        _build,
        "nodeproof assets build --stream-src ./stream.c --only stream",
    ),
    "verify": ("hash what was installed anew", _verify, "nodeproof assets verify"),
    "image": (
        f"build an image for a deployment: {', '.join(_KINDS)}",
        _image,
        "nodeproof assets image control --image nodeproof/control:1 --base-image site/python:3.11 --wheels ./wheels",
    ),
}


def add_assets(
    parser: argparse.ArgumentParser,
    common: Callable[[argparse.ArgumentParser], None],
    run: Callable[[str], Callable[[Options], int]],
) -> None:
    """Put the actions below ``parser``; ``common`` adds what all commands have, ``run`` gives the function of a module."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, (text, add, example) in _ACTIONS.items():
        action = actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"Example: {example}", allow_abbrev=False
        )
        module = "assets_image" if name == "image" else "assets"
        action.set_defaults(run=run(module), command="assets", action=name, parser=action)
        common(action)
        add(action)
