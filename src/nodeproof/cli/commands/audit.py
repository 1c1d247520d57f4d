"""``nodeproof audit``: licences, notices, hashes and manifests of a release, and its list of parts."""

import argparse
import os

import nodeproof
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table
from nodeproof.clock import SystemClock, rfc3339
from nodeproof.errors import UsageError
from nodeproof.host.atomic import store_file
from nodeproof.operate.audit.checks import Check, Result, Vendored, audit_tree, vendored
from nodeproof.operate.audit.environment import audit_environment, installed
from nodeproof.operate.audit.manifests import audit_manifest
from nodeproof.operate.audit.sbom import sbom

__all__ = ["run"]

_SBOM_MODE = 0o644


def run(options: argparse.Namespace) -> int:
    """Exit 0 when no check failed, else 1. What could not be checked is named as that."""
    parts = installed()
    checks: list[Check] = []
    if options.source:
        if not os.path.isfile(os.path.join(options.source, "pyproject.toml")):
            raise UsageError(f"--source {options.source}: holds no pyproject.toml; expected a checkout or an unpacked sdist")
        checks += audit_tree(options.source)
    else:
        checks.append(Check("source tree", Result.NOT_CHECKED, "none was given: --source DIR"))
    checks += audit_environment(parts)
    checks.append(audit_manifest("build", options.cpu_manifest, required=options.require_runtime_manifests))
    checks.append(audit_manifest("deployment", options.deployment_manifest, required=options.require_runtime_manifests))
    if options.sbom:
        data = sbom(parts, _vendored(), rfc3339(SystemClock().now().wall_s) if options.timestamp else "")
        store_file(options.sbom, data, mode=_SBOM_MODE)
        checks.append(Check("list of parts", Result.OK, f"{options.sbom}: {len(parts)} distributions"))
    if options.output == "json":
        print_json({"checks": checks, "parts": parts}, indent=2)
    else:
        print_table(("check", "result", "detail"), [(one.name, str(one.result), one.detail) for one in checks])
    return int(any(one.result is Result.FAILED for one in checks))


def _vendored() -> list[Vendored]:
    """What ships inside this package. Raises UsageError for a package without its table."""
    folder = os.path.join(os.path.dirname(nodeproof.__file__), "web", "static", "vendor")
    try:
        return vendored(folder)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; this nodeproof is not whole: install it anew") from None
