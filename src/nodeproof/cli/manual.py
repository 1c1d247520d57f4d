"""Man pages and shell completions, printed from the parsers of the command line and the keys of the configuration."""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from nodeproof import __version__
from nodeproof.cli.parser import make_parser
from nodeproof.config.keys import SCHEMA, Dead, Each, Key, Node, Section

__all__ = ["Command", "bash_completion", "commands", "config_manual", "fish_completion", "manual", "pages", "zsh_completion"]

_MAN = "/usr/share/man"
_BASH = "/usr/share/bash-completion/completions/nodeproof"
_ZSH = "/usr/share/zsh/site-functions/_nodeproof"
_FISH = "/usr/share/fish/vendor_completions.d/nodeproof.fish"


class Command(NamedTuple):
    """One command or action with what it takes."""

    words: tuple[str, ...]
    """``("stress", "run")``; empty = the program itself."""
    parser: argparse.ArgumentParser
    help: str

    def options(self) -> list[argparse.Action]:
        """Its flags."""
        return [action for action in self.parser._actions if action.option_strings]  # noqa: SLF001 - argparse has no other way

    def arguments(self) -> list[argparse.Action]:
        """What it takes without a flag, other than commands."""
        return [
            action
            for action in self.parser._actions  # noqa: SLF001 - as above
            if not action.option_strings and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
        ]


def pages() -> dict[str, str]:
    """Every page by the path at which a system looks for it."""
    return {
        f"{_MAN}/man1/nodeproof.1": manual(),
        f"{_MAN}/man5/nodeproof.yaml.5": config_manual(),
        _BASH: bash_completion(),
        _ZSH: zsh_completion(),
        _FISH: fish_completion(),
    }


def commands() -> list[Command]:
    """The program, its commands, and their actions, each after what it belongs to."""
    return list(_below((), make_parser(), ""))


def _below(words: tuple[str, ...], parser: argparse.ArgumentParser, text: str) -> Iterator[Command]:
    yield Command(words, parser, text)
    for action in parser._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 - as above
            for name, inner in action.choices.items():
                yield from _below((*words, name), inner, helps.get(name, "").replace("%%", "%"))


def manual() -> str:
    """nodeproof(1), in the man macros."""
    everything = commands()
    lines = [
        f'.TH NODEPROOF 1 "" "nodeproof {__version__}" "User Commands"',
        ".SH NAME",
        r"nodeproof \- prove a node before you trust it, or any number it gives you",
        ".SH SYNOPSIS",
        ".B nodeproof",
        ".RI [ COMMAND ]\n.RI [ OPTIONS ]",
        ".SH DESCRIPTION",
        "Observes a server, judges its health with reasons, loads it to prove what it computes, and keeps the evidence for each",
        "answer. Without a command:\n.BR up .",
        ".SH COMMANDS",
    ]
    for command in everything:
        if command.words:
            lines += _command_section(command)
    lines += [
        ".SH EXIT STATUS",
        "0 done, 1 failed, 2 the command line or the configuration is wrong, 130 interrupted.",
        ".B check\nhas its own: 0 sound, 1 warning, 2 critical, 3 unknown, stale or no daemon.",
        ".SH FILES",
        ".TP\n.I /etc/nodeproof/nodeproof.yaml\nConfiguration; see\n.BR nodeproof.yaml (5).",
        ".SH SEE ALSO",
        ".BR nodeproof.yaml (5)",
    ]
    return "\n".join(lines) + "\n"


def _command_section(command: Command) -> list[str]:
    lines = [f".SS {_roff(' '.join(command.words))}", _roff((command.parser.description or command.help).strip())]
    for action in command.arguments():
        lines += [".TP", f".I {_roff(_shown(action))}", _roff(_help(action))]
    for action in command.options():
        flags = ", ".join(rf"\fB{_roff(flag)}\fR" for flag in action.option_strings)
        value = rf" \fI{_roff(_shown(action))}\fR" if action.nargs != 0 else ""
        lines += [".TP", flags + value, _roff(_help(action))]
    example = (command.parser.epilog or "").partition("Example: ")[2].partition(". Each ")[0]
    if example:
        lines += [".PP", "Example:", ".PP", ".nf", _roff(example.replace("%%", "%")), ".fi"]
    return lines


def config_manual() -> str:
    """nodeproof.yaml(5)."""
    lines = [
        f'.TH NODEPROOF.YAML 5 "" "nodeproof {__version__}" "File Formats"',
        ".SH NAME",
        r"nodeproof.yaml \- configuration of nodeproof",
        ".SH DESCRIPTION",
        "One YAML file, all of it optional. Unknown keys and bad values are refused, each with its line:",
        ".B nodeproof config check\njudges a file,\n.B nodeproof config show\nprints what is in force.",
        "Durations carry a unit: 500ms, 3s, 1h30m.",
        ".SH KEYS",
    ]
    for path, key in _keys(SCHEMA, ""):
        lines += [".TP", rf"\fB{_roff(path)}\fR", _roff(key.help)]
    return "\n".join(lines) + "\n"


def _keys(node: Node, path: str) -> Iterator[tuple[str, Key]]:
    if isinstance(node, Section):
        for name, inner in node.keys.items():
            yield from _keys(inner, f"{path}.{name}" if path else name)
    elif isinstance(node, Each):
        yield from _keys(node.item, f"{path}.<name>")
    elif not isinstance(node, Dead):
        yield path, node


def bash_completion() -> str:
    """For bash: commands, actions, flags, and the values of a flag that has a list of them."""
    cases = []
    for command in commands():
        words = " ".join(command.words)
        cases.append(f'        "{words}") words="{" ".join(_candidates(command))}" ;;')
    values = [
        f'        {flag}) COMPREPLY=($(compgen -W "{values}" -- "$cur")); return ;;' for flag, values in _flags_with_choices()
    ]
    return "\n".join(
        [
            "# bash completion of nodeproof",
            "_nodeproof() {",
            '    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path="" word words i',
            '    case "$prev" in',
            *values,
            '        -c|-config|--config|--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;',
            "    esac",
            "    for ((i = 1; i < COMP_CWORD; i++)); do",
            "        word=${COMP_WORDS[i]}",
            "        [[ $word == -* ]] && continue",
            '        case " $(_nodeproof_words "$path") " in *" $word "*) path="${path:+$path }$word" ;; esac',
            "    done",
            '    COMPREPLY=($(compgen -W "$(_nodeproof_words "$path")" -- "$cur"))',
            "}",
            "_nodeproof_words() {",
            "    local words",
            '    case "$1" in',
            *cases,
            "    esac",
            '    echo "$words"',
            "}",
            "complete -F _nodeproof nodeproof",
            "",
        ]
    )


def zsh_completion() -> str:
    """For zsh: the same through its emulation of bash's words."""
    cases = [f'        "{" ".join(one.words)}") words=({" ".join(_candidates(one))}) ;;' for one in commands()]
    return "\n".join(
        [
            "#compdef nodeproof",
            "_nodeproof_words() {",
            '    case "$1" in',
            *cases,
            "    esac",
            "}",
            "_nodeproof() {",
            '    local path_so_far="" word; local -a words_typed words',
            "    words_typed=(${words[2,CURRENT-1]}); words=()",
            "    for word in $words_typed; do",
            '        _nodeproof_words "$path_so_far"',
            "        [[ $word != -* && ${words[(Ie)$word]} -gt 0 ]] || continue",
            '        path_so_far="${path_so_far:+$path_so_far }$word"',
            "    done",
            '    words=(); _nodeproof_words "$path_so_far"',
            "    compadd -a words",
            "}",
            '_nodeproof "$@"',
            "",
        ]
    )


def fish_completion() -> str:
    """For fish: commands with their help, and flags below each."""
    lines = ["# fish completion of nodeproof", "complete -c nodeproof -f"]
    for command in commands():
        if len(command.words) == 1:
            lines.append(f"complete -c nodeproof -n __fish_use_subcommand -a {command.words[0]} -d {_quoted(command.help)}")
        elif len(command.words) > 1:
            seen = f"'__fish_seen_subcommand_from {command.words[0]}'"
            lines.append(f"complete -c nodeproof -n {seen} -a {command.words[-1]} -d {_quoted(command.help)}")
        if len(command.words) == 1:
            for action in command.options():
                long = next((flag[2:] for flag in action.option_strings if flag.startswith("--")), "")
                if long:
                    seen = f"'__fish_seen_subcommand_from {command.words[0]}'"
                    lines.append(f"complete -c nodeproof -n {seen} -l {long} -d {_quoted(_help(action))}")
    return "\n".join(lines) + "\n"


def _candidates(command: Command) -> list[str]:
    names = [words[-1] for words in (one.words for one in _actions(command))]
    return names + [flag for action in command.options() for flag in action.option_strings if flag.startswith("--")]


def _actions(command: Command) -> list[Command]:
    """Commands one word below it."""
    return [one for one in _below(command.words, command.parser, "") if len(one.words) == len(command.words) + 1]


def _flags_with_choices() -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for command in commands():
        for action in command.options():
            if action.choices:
                found.setdefault("|".join(action.option_strings), " ".join(map(str, action.choices)))
    return list(found.items())


def _shown(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest)


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _roff(text: str) -> str:
    """``text`` as it stands, to troff: no escape, no request, hyphens that can be copied."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("\n", " ")
    return r"\&" + escaped if escaped.startswith((".", "'")) else escaped


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
