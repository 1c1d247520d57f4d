"""The page's code under a type checker, against the types of the documents that the server promises."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from nodeproof.web.openapi import document
from support.wire_types import declarations

ROOT = Path(__file__).parents[3]
CHECKER = ROOT / "tools" / "node" / "node_modules" / "typescript" / "bin" / "tsc"
PROJECT = ROOT / "tests" / "typing" / "page"

pytestmark = pytest.mark.timeout(90)


def check(project: Path) -> str:
    """What the checker says."""
    command = [str(shutil.which("node")), str(CHECKER), "-p", str(project)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.fixture
def project(tmp_path: Path, absent_here: list[str]) -> Path:
    """The project of the checker beside the declarations of today's documents."""
    if shutil.which("node") is None or not CHECKER.exists():
        absent_here.append(
            "typescript is not installed (Debian: apt-get install nodejs npm; then npm ci --prefix tools/node): "
            "types of the page's code were not checked"
        )
        pytest.skip("typescript is not installed")
    wire = tmp_path / "wire.d.ts"
    wire.write_text(declarations(document()["components"]["schemas"]), encoding="utf-8")
    found = tmp_path / "tsconfig.json"
    include = [f"{ROOT}/src/nodeproof/web/static/js/*.js", str(wire)]
    found.write_text(json.dumps({"extends": f"{PROJECT}/tsconfig.json", "include": include}), encoding="utf-8")
    return found


def test_the_page_keeps_to_the_types_of_the_documents(project: Path) -> None:
    assert check(project) == ""


def test_a_key_that_no_document_has_is_found(project: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.js"
    wrong.write_text("/** @param {Wire.Report} report */\nexport const id = (report) => report.job_number;\n", encoding="utf-8")
    text = project.read_text("utf-8").replace('"include": [', f'"include": ["{wrong}", ')
    project.write_text(text, encoding="utf-8")
    assert "Property 'job_number' does not exist on type" in check(project)
