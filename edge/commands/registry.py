"""`glassd registry`: the tools of this installation, as the daemon starts with them; only
`sync` needs a daemon.
"""

import os
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, for_people
from edge.commands.shared.daemon_client import ask
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.builder import compiler, describe
from tools_cache.builder.build_info import stamp
from tools_cache.errors import BadManifest, MissingForm
from tools_cache.providers.forms import PROVIDERS, find, form_of
from tools_cache.registry import manifest, tool_docs
from tools_cache.registry.models import Registry

SYNC_S: Final = 150.0
"""The daemon itself gives up earlier than this."""


def run(args: Namespace, screen: Screen) -> int:
    if args.action == "sync":
        return _sync(args, screen)
    file = (
        Path(args.file)
        if args.file
        else Path(args.tools, compiler.ARTIFACT.name)
        if args.tools
        else compiler.ARTIFACT
    )
    return {"build": _build, "check": _check, "show": _show}[args.action](args, file, screen)


def _sync(args: Namespace, screen: Screen) -> int:
    """Have the daemon fetch the cloud's registry now, and show the result."""
    layer = ask(args, "POST", "/v1/registry/sync", {}, timeout_s=SYNC_S, who="owner")
    if screen.as_json:
        screen.json(layer)
        return 0
    cloud = layer["cloud"]
    screen.line(f"registry {cloud['version']} of {cloud['url']} is active")
    screen.line(
        f"{layer['tools']} tools with those of this installation, "
        f"{layer['compatible']} for these glasses"
    )
    for dropped in layer["dropped"]:
        screen.note(f"left out: {dropped}")
    return 0


# ------------------------------------------------------------------ build, check


def _build(args: Namespace, file: Path, screen: Screen) -> int:
    report = _compiled(args, screen)
    if report.text is None:
        return 1
    try:
        compiler.write(report.text, file, made=stamp(_folders(args), os.environ))
    except OSError as e:
        raise CliError(
            "CANNOT_WRITE", f"{file}: cannot be written: {e.strerror}", "choose another: --file"
        ) from None
    if args.losses and not screen.as_json:
        for line in _losses(report):
            screen.line(line)
    return _summary(report, file, screen)


def _check(args: Namespace, file: Path, screen: Screen) -> int:
    if not file.is_file():
        raise CliError("NOT_BUILT", f"{file}: there is no such file", _again(args))
    report = _compiled(args, screen)
    if report.text is None:
        return 1
    if not compiler.up_to_date(report.text, file):
        raise CliError("NOT_UP_TO_DATE", f"{file} does not match the tools", _again(args))
    return _summary(report, file, screen)


def _again(args: Namespace) -> str:
    """Return the command that builds this registry."""
    return " ".join(
        [
            "glassd registry build",
            *(f"--{name} {value}" for name in ("tools", "file") if (value := getattr(args, name))),
        ]
    )


def _folders(args: Namespace) -> Path:
    return Path(args.tools) if args.tools else compiler.TOOLS


def _compiled(args: Namespace, screen: Screen) -> compiler.Report:
    """Compile the tools and print every problem found; with `--json` the failures as data."""
    try:
        report = compiler.compile_tools(_folders(args))
    except OSError as e:
        raise CliError(
            "CANNOT_READ",
            f"{_folders(args)}: cannot be read: {e.strerror}",
            "choose another: --tools",
        ) from None
    for warning in report.warnings if not screen.as_json else ():
        screen.note(f"warning: {warning}")
    if report.text is None:
        fix = "correct them, then build again"
        if not screen.as_json:
            raise CliError(
                "DOES_NOT_COMPILE",
                "the tools do not compile:\n  " + "\n  ".join(map(str, report.failures)),
                fix,
            )
        found = [failure.to_json() for failure in report.failures]
        screen.json(
            {
                "error": {
                    "code": "DOES_NOT_COMPILE",
                    "message": "the tools do not compile",
                    "fix": fix,
                    "failures": found,
                }
            }
        )
    return report


def _summary(report: compiler.Report, file: Path, screen: Screen) -> int:
    forms = Counter(provider for told in report.told.values() for provider in told.made)
    if screen.as_json:
        screen.json(
            {
                "file": str(file),
                "tools": report.tools,
                "version": report.version,
                "warnings": [str(warning) for warning in report.warnings],
                "forms": {p: forms[p] for p in PROVIDERS},
                "withheld": {
                    name: dict(told.withheld) for name, told in report.told.items() if told.withheld
                },
                "losses": {
                    name: dict(told.losses) for name, told in report.told.items() if told.losses
                },
            }
        )
        return 0
    for name, told in report.told.items():
        for provider, why in told.withheld.items():
            screen.note(f"note: {name} is withheld from {provider}: {why}")
    screen.line("forms: " + ", ".join(f"{provider} {forms[provider]}" for provider in PROVIDERS))
    screen.line(f"{report.tools} tool{'s' * (report.tools != 1)}, version {report.version}: {file}")
    return 0


def _losses(report: compiler.Report) -> list[str]:
    return [
        f"{name} for {provider}: {loss}"
        for name, told in report.told.items()
        for provider, losses in told.losses.items()
        for loss in losses
    ]


# ------------------------------------------------------------------ show


def _show(args: Namespace, file: Path, screen: Screen) -> int:
    document, registry = _read(file, _again(args))
    if args.prompt:
        return _print(
            document.get("prompts", {}).get(args.prompt, ""), {"prompt": args.prompt}, screen
        )
    if args.provider and not args.tool:
        raise CliError(
            "WRONG_USAGE",
            "--provider needs a tool: its form is printed",
            "glassd registry show",
            exit_code=2,
        )
    if args.tool:
        told = find(document, args.tool)
        if told is None:
            raise CliError(
                "TOOL_NOT_FOUND",
                f"there is no tool {args.tool} in {file}",
                "glassd registry show",
                exit_code=4,
            )
        if args.provider:
            return _form(told, args.provider, screen)
        return _tool(told, registry, _folders(args), screen)
    if screen.as_json:
        screen.json(document)
        return 0
    tools = [tool for app in registry.apps for tool in app.tools]
    screen.table(
        [(t.name, t.category, t.source.value, t.description.split(". ")[0]) for t in tools]
    )
    screen.line(f"version {registry.version}")
    return 0


def _read(file: Path, again: str) -> tuple[dict[str, Any], Registry]:
    try:
        body = file.read_bytes()
        return manifest.parse_json(body), manifest.load(
            body, source=Source.LOCAL, per_tool_hardware=True
        )
    except OSError as e:
        raise CliError(
            "NOT_BUILT", f"{file}: cannot be read: {e.strerror}", again, exit_code=4
        ) from None
    except BadManifest as e:
        raise CliError("BAD_REGISTRY", f"{file}: {e}", again) from None


def _form(told: Any, provider: str, screen: Screen) -> int:
    """Print one provider's form on stdout, so that it can be piped; its losses go to stderr."""
    try:
        form = form_of(told, provider)
    except MissingForm as e:
        raise CliError("MISSING_FORM", str(e), "glassd registry build") from None
    losses = (told.get("losses") or {}).get(provider, [])
    if screen.as_json:
        screen.json({"tool": told["name"], "provider": provider, "form": form, "losses": losses})
        return 0
    screen.line(for_people(form))
    for loss in losses:
        screen.note(f"note: {loss}")
    return 0


def _tool(told: Any, registry: Registry, folders: Path, screen: Screen) -> int:
    """Print all details of one tool."""
    tool = next(t for app in registry.apps for t in app.tools if t.name == told["name"])
    doc = tool_docs.documentation(tool, folders)
    known = {
        **tool_docs.metadata(tool),
        "encodedName": told["encodedName"],
        "summary": tool_docs.summary(tool),
    }
    written = describe.read(tool, folders)
    if screen.as_json:
        screen.json(
            {
                **known,
                **describe.data(tool, written),
                "description": tool.description,
                "parameters": tool.raw["inputSchema"],
                "documentation": doc,
                "providers": sorted(told.get("providerSchemas", {})),
                "withheld": told.get("withheld", {}),
            }
        )
        return 0
    screen.table(
        [
            (key, ", ".join(value) if isinstance(value, list) else for_people(value))
            for key, value in known.items()
        ]
    )
    screen.line("\n" + for_people(describe.text(tool, written)))
    screen.line("\n" + for_people(_plain(tool)))
    screen.line("\n" + (doc or "(no documentation)").strip())
    return 0


def _plain(tool: ToolDefinition) -> Any:
    return dict(tool.raw["inputSchema"])


def _print(text: str, about_it: dict[str, str], screen: Screen) -> int:
    if screen.as_json:
        screen.json({**about_it, "text": text})
    else:
        screen.line(text.rstrip())
    return 0
