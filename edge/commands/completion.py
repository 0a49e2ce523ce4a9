"""`glassd completion`: completion scripts for bash, zsh and fish, generated from the parser of
the command line.
"""

import argparse
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any

from edge.commands.shared.console import Screen


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its names, its help, whether it takes a value or a file, and its choices."""

    names: tuple[str, ...]
    text: str
    choices: tuple[str, ...]
    takes_value: bool
    takes_file: bool


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    text: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def completion(args: Namespace, screen: Screen) -> int:
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](verbs_of(args.build_parser()))
    return screen.result({"shell": args.shell, "script": script}, script)


def verbs_of(parser: ArgumentParser) -> list[Verb]:
    """Return every verb with its options and the choices of its positional arguments."""
    tree = _subparsers(parser)
    texts = {choice.dest: choice.help or "" for choice in tree._choices_actions}  # noqa: SLF001 - argparse has no public way
    return [_verb(name, texts.get(name, ""), verb) for name, verb in tree.choices.items()]


def _subparsers(parser: ArgumentParser) -> Any:
    return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 - same


def _verb(name: str, text: str, verb: ArgumentParser) -> Verb:
    options: list[Option] = []
    words: list[str] = []
    for action in verb._actions:  # noqa: SLF001 - same
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - same
            words += action.choices
            for inner in action.choices.values():
                options += (o for o in _verb("", "", inner).options if o not in options)
        elif action.option_strings:
            options.append(_option(action))
        else:
            words += [str(choice) for choice in action.choices or ()]
    words += verb.get_default("offered") or ()
    return Verb(name, text, tuple(options), tuple(words))


def _option(action: argparse.Action) -> Option:
    takes_file = action.metavar in {"FILE", "PATH", "DIR"}
    names, choices = tuple(action.option_strings), tuple(map(str, action.choices or ()))
    return Option(names, action.help or "", choices, action.nargs != 0, takes_file)


# ------------------------------------------------------------------ bash


def bash(verbs: list[Verb]) -> str:
    names = " ".join(v.name for v in verbs)
    cases = "\n".join(_bash_case(v) for v in verbs)
    return f"""\
# bash completion of glassd: source <(glassd completion bash)
_glassd() {{
    local words=() word glue= i
    for (( i = 0; i <= COMP_CWORD; i++ )); do  # bash takes mock:full for three words
        word=${{COMP_WORDS[i]}}
        if [[ -n $glue || $word == :* ]]; then words[${{#words[@]}}-1]+=$word; else words+=("$word"); fi
        if [[ $word == *: ]]; then glue=1; else glue=; fi
    done
    local cur=${{words[${{#words[@]}}-1]}} prev=${{words[${{#words[@]}}-2]}}
    COMPREPLY=()
    _glassd_words
    if [[ $cur == *:* && ${{COMP_WORDBREAKS-}} == *:* ]]; then
        COMPREPLY=("${{COMPREPLY[@]#"${{cur%"${{cur##*:}}"}}"}}")
    fi
}}
_glassd_words() {{
    if (( ${{#words[@]}} == 2 )); then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$cur"))
        return
    fi
    case "${{words[1]}}" in
{cases}
    esac
}}
complete -o bashdefault -o default -F _glassd glassd"""  # noqa: E501


def _bash_case(verb: Verb) -> str:
    values = "".join(
        f"            {'|'.join(o.names)}) {_bash_value(o)}; return;;\n"
        for o in verb.options
        if o.takes_value
    )
    words = " ".join((*verb.words, *(name for o in verb.options for name in o.names)))
    inner = f'            case "$prev" in\n{_indent(values)}            esac\n' if values else ""
    return (
        f'        {verb.name})\n{inner}            COMPREPLY=($(compgen -W "{words}" -- "$cur"));;'
    )


def _bash_value(option: Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur"))'
    return 'COMPREPLY=($(compgen -f -- "$cur"))' if option.takes_file else ":"


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


# ------------------------------------------------------------------ zsh


def zsh(verbs: list[Verb]) -> str:
    described = "\n".join(f"        {_quoted(f'{v.name}:{v.text}')}" for v in verbs)
    cases = "\n".join(_zsh_case(v) for v in verbs)
    return f"""\
#compdef glassd
# zsh completion of glassd: put into a file _glassd on your $fpath, or: source <(glassd completion zsh)
_glassd() {{
    local -a verbs
    verbs=(
{described}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{cases}
    esac
}}
if [ "$funcstack[1]" = _glassd ]; then _glassd "$@"; else compdef _glassd glassd; fi"""  # noqa: E501


def _zsh_case(verb: Verb) -> str:
    specs = [_zsh_option(name, o) for o in verb.options for name in o.names]
    specs += [_quoted(f"1:word:({' '.join(verb.words)})")] if verb.words else []
    return f"        {verb.name}) _arguments {' '.join(specs)} '*::file:_files';;"


def _zsh_option(name: str, option: Option) -> str:
    text = option.text.replace("[", "(").replace("]", ")").replace(":", " ")
    value = f":value:({' '.join(option.choices)})" if option.choices else ":value:"
    value = ":file:_files" if option.takes_file and not option.choices else value
    return _quoted(f"{name}[{text}]" + (value if option.takes_value else ""))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ------------------------------------------------------------------ fish


def fish(verbs: list[Verb]) -> str:
    lines = [
        "# fish completion of glassd: glassd completion fish | source",
        "complete -c glassd -f",
    ]
    for verb in verbs:
        text = _fish_quoted(verb.text)
        lines.append(f"complete -c glassd -n __fish_use_subcommand -a {verb.name} -d {text}")
        chosen = f"complete -c glassd -n '__fish_seen_subcommand_from {verb.name}'"
        lines += [f"{chosen} -a {_fish_quoted(' '.join(verb.words))}"] if verb.words else []
        lines += [f"{chosen}{_fish_option(o)}" for o in verb.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    names = "".join(f" -l {n[2:]}" if n.startswith("--") else f" -s {n[1:]}" for n in option.names)
    value = f" -xa {_fish_quoted(' '.join(option.choices))}" if option.choices else " -x"
    value = " -rF" if option.takes_file and not option.choices else value
    return f"{names}{value if option.takes_value else ''} -d {_fish_quoted(option.text)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
