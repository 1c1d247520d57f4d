"""Man pages and completions say what the parsers say."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nodeproof.cli import manual
from nodeproof.cli.parser import COMMANDS
from nodeproof.cli.stress_options import STRESS_ACTIONS


def completed(folder: Path, *words: str) -> list[str]:
    """What bash would offer for the last of ``words``."""
    script = folder / "nodeproof"
    script.write_text(manual.bash_completion())
    quoted = " ".join(f"'{word}'" for word in ("nodeproof", *words))
    program = f'source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _nodeproof; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["/bin/bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_every_command_and_flag_has_its_place_in_the_manual() -> None:
    text = manual.manual().replace("\\-", "-")
    for command in manual.commands():
        if command.words:
            assert f".SS {' '.join(command.words)}\n" in text
        for action in command.options():
            assert all(f"\\fB{flag}\\fR" in text for flag in action.option_strings) or not command.words
    assert {name for name, *_ in COMMANDS} | {("stress", action) for action in STRESS_ACTIONS} <= {
        command.words[0] if len(command.words) == 1 else command.words for command in manual.commands() if command.words
    }


def test_every_key_of_the_configuration_is_in_its_manual() -> None:
    text = manual.config_manual()
    for key in ("snapshot.dir", "storage.data_dir", "stress.benchmarks.<name>.timeout", "exporter.address"):
        assert f"\\fB{key.replace('-', chr(92) + '-')}\\fR" in text


@pytest.mark.parametrize("make", [manual.manual, manual.config_manual])
def test_the_manuals_are_sound_troff(tmp_path: Path, make: object, absent_here: list[str]) -> None:
    assert callable(make)
    groff = shutil.which("groff")
    if groff is None:
        absent_here.append("the manuals through groff: it is not installed")
        return
    page = tmp_path / "page"
    page.write_text(make())
    done = subprocess.run([groff, "-man", "-ww", "-z", "-Tutf8", str(page)], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_text_that_looks_like_a_request_is_none() -> None:
    assert manual._roff(".so /etc/passwd") == r"\&.so /etc/passwd"
    assert manual._roff("a\\fB-b") == r"a\efB\-b"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("unins",), {"uninstall"}),
        (("stress", ""), {*STRESS_ACTIONS, "--help"}),
        (("stress", "run", "--pl"), {"--plan"}),
        (("stress", "run", "--plan", ""), {"quick", "standard", "soak"}),
        (("collect", "-o", "pr"), {"prom"}),
        (("stress", "--json", "sho"), {"show"}),
        (("nothing", "xyz"), set()),
    ],
)
def test_bash_offers_what_fits(tmp_path: Path, words: tuple[str, ...], offered: set[str]) -> None:
    assert set(completed(tmp_path, *words)) == offered


def test_the_other_shells_know_the_same_commands() -> None:
    names = {name for name, *_ in COMMANDS}
    zsh, fish = manual.zsh_completion(), manual.fish_completion()
    for name in names:
        assert f'"{name}") words=(' in zsh
        assert f"-a {name} -d " in fish


@pytest.mark.parametrize(("shell", "make"), [("zsh", manual.zsh_completion), ("fish", manual.fish_completion)])
def test_other_shells_can_read_them(tmp_path: Path, shell: str, make: object, absent_here: list[str]) -> None:
    assert callable(make)
    program = shutil.which(shell)
    if program is None:
        absent_here.append(f"the completion of {shell}: it is not installed")
        return
    page = tmp_path / "completion"
    page.write_text(make())
    assert subprocess.run([program, "-n", str(page)], check=False).returncode == 0


def test_pages_go_where_systems_look_for_them() -> None:
    assert set(manual.pages()) == {
        "/usr/share/man/man1/nodeproof.1",
        "/usr/share/man/man5/nodeproof.yaml.5",
        "/usr/share/bash-completion/completions/nodeproof",
        "/usr/share/zsh/site-functions/_nodeproof",
        "/usr/share/fish/vendor_completions.d/nodeproof.fish",
    }
