"""Documents hold: links lead somewhere, version and changelog agree, examples are valid and name what exists."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nodeproof import __version__
from nodeproof.model.catalogue import CATALOGUE
from nodeproof.sinks import prometheus
from nodeproof.sinks.exposition_names import Naming, family
from support.documents import PAGES, ROOT, blocks

LINK = re.compile(r"(?<!\!)\[[^\]]+\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    broken = []
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            broken.append(f"{target}: a page of this project leads to its own pages only")
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            broken.append(f"{target}: no such file")
        elif anchor and anchor not in _anchors(file):
            broken.append(f"{target}: no such heading")
    assert broken == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_version_and_changelog_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"^## (\S+) - (\d{4}-\d\d-\d\d|unreleased)$", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


def test_the_readme_names_every_document() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in readme]
    assert missing == []


def test_every_series_that_documents_name_exists() -> None:
    known = {family(*spec.key, spec.unit, spec, Naming.NODEPROOF).name for spec in CATALOGUE.values()}
    known |= {own.name for own in prometheus._OWN}
    for page in PAGES:
        named = set(re.findall(r"\bnodeproof_[a-z0-9_]*[a-z0-9]\b", page.read_text("utf-8"))) - {
            "nodeproof_daemon",
            "nodeproof_version",
        }
        assert named - known == set(), page.name


@pytest.mark.parametrize(("kind", "check"), [("alerts", "rules"), ("scrape", "config")])
def test_promtool_accepts_the_examples(kind: str, check: str, tmp_path: Path, absent_here: list[str]) -> None:
    (example,) = [block.text for block in blocks(ROOT / "docs" / "prometheus.md") if block.info == f"yaml {kind}"]
    program = shutil.which("promtool")
    if program is None:
        absent_here.append(f"promtool (Debian package prometheus): the example of {kind} was not checked")
        return
    file = tmp_path / "example.yml"
    file.write_text(example, encoding="utf-8")
    done = subprocess.run([program, "check", check, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
