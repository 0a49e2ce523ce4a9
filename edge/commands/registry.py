"""`glassd registry`: the tools of this installation, as the daemon starts with them; only
`sync` needs a daemon.
"""

import os
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, for_people
from edge.commands.shared.daemon import ask
from edge.runtime.errors import UserError
from tools_cache.api.tool import Source
from tools_cache.builder import compiler, describe
from tools_cache.builder.build_info import stamp
from tools_cache.errors import BadManifest, MissingForm
from tools_cache.providers.forms import PROVIDERS, find, form_of
from tools_cache.registry import manifest, tool_docs
from tools_cache.registry.models import Registry

SYNC_S: Final = 150.0
"""The daemon itself gives up earlier than this."""


def registry(args: Namespace, screen: Screen) -> int:
    if args.action == "sync":
        return _sync(args, screen)
    built = Path(args.tools, compiler.ARTIFACT.name) if args.tools else compiler.ARTIFACT
    file = Path(args.file) if args.file else built
    return {"build": _build, "check": _check, "show": _show}[args.action](args, file, screen)


def _sync(args: Namespace, screen: Screen) -> int:
    """Have the daemon fetch the cloud's registry now, and show the result."""
    layer = ask(args, "POST", "/v1/registry/sync", {}, timeout_s=SYNC_S, who="owner")
    cloud = layer["cloud"]
    screen.result(
        layer,
        f"registry {cloud['version']} of {cloud['url']} is active",
        f"{layer['tools']} tools with those of this installation, "
        f"{layer['compatible']} for these glasses",
    )
    for dropped in () if screen.as_json else layer["dropped"]:
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
        problem = f"{file}: cannot be written: {e.strerror}"
        raise UserError("CANNOT_WRITE", problem, "choose another: --file") from None
    if args.losses and not screen.as_json:
        for line in _losses(report):
            screen.line(line)
    return _summary(report, file, screen)


def _check(args: Namespace, file: Path, screen: Screen) -> int:
    if not file.is_file():
        raise UserError("NOT_BUILT", f"{file}: there is no such file", _again(args))
    report = _compiled(args, screen)
    if report.text is None:
        return 1
    if not compiler.up_to_date(report.text, file):
        raise UserError("NOT_UP_TO_DATE", f"{file} does not match the tools", _again(args))
    return _summary(report, file, screen)


def _again(args: Namespace) -> str:
    """Return the command that builds this registry."""
    given = (f" --{name} {value}" for name in ("tools", "file") if (value := getattr(args, name)))
    return f"glassd registry build{''.join(given)}"


def _folders(args: Namespace) -> Path:
    return Path(args.tools) if args.tools else compiler.TOOLS


def _compiled(args: Namespace, screen: Screen) -> compiler.Report:
    """Compile the tools and print every problem found; with `--json` the failures as data."""
    try:
        report = compiler.compile_tools(_folders(args))
    except OSError as e:
        problem = f"{_folders(args)}: cannot be read: {e.strerror}"
        raise UserError("CANNOT_READ", problem, "choose another: --tools") from None
    for warning in report.warnings if not screen.as_json else ():
        screen.note(f"warning: {warning}")
    if report.text is None:
        code, problem = "DOES_NOT_COMPILE", "the tools do not compile"
        fix = "correct them, then build again"
        if not screen.as_json:
            listed = "\n  ".join(map(str, report.failures))
            raise UserError(code, f"{problem}:\n  {listed}", fix)
        failures = [failure.to_json() for failure in report.failures]
        error = {"code": code, "message": problem, "fix": fix, "failures": failures}
        screen.json({"error": error})
    return report


def _summary(report: compiler.Report, file: Path, screen: Screen) -> int:
    counts = Counter(provider for forms in report.forms.values() for provider in forms.made)
    withheld = {name: dict(each.withheld) for name, each in report.forms.items() if each.withheld}
    losses = {name: dict(each.losses) for name, each in report.forms.items() if each.losses}
    for name, providers in () if screen.as_json else withheld.items():
        for provider, why in providers.items():
            screen.note(f"note: {name} is withheld from {provider}: {why}")
    return screen.result(
        {
            "file": str(file),
            "tools": report.tools,
            "version": report.version,
            "warnings": [str(warning) for warning in report.warnings],
            "forms": {provider: counts[provider] for provider in PROVIDERS},
            "withheld": withheld,
            "losses": losses,
        },
        "forms: " + ", ".join(f"{provider} {counts[provider]}" for provider in PROVIDERS),
        f"{report.tools} tool{'s' * (report.tools != 1)}, version {report.version}: {file}",
    )


def _losses(report: compiler.Report) -> list[str]:
    return [
        f"{name} for {provider}: {loss}"
        for name, forms in report.forms.items()
        for provider, losses in forms.losses.items()
        for loss in losses
    ]


# ------------------------------------------------------------------ show


def _show(args: Namespace, file: Path, screen: Screen) -> int:
    document, registry = _read(file, _again(args))
    if args.prompt:
        text = document.get("prompts", {}).get(args.prompt, "")
        return screen.result({"prompt": args.prompt, "text": text}, text.rstrip())
    if args.provider and not args.tool:
        problem = "--provider needs a tool: its form is printed"
        raise UserError("WRONG_USAGE", problem, "glassd registry show")
    if args.tool:
        found = find(document, args.tool)
        if found is None:
            problem = f"there is no tool {args.tool} in {file}"
            raise UserError("TOOL_NOT_FOUND", problem, "glassd registry show")
        if args.provider:
            return _form(found, args.provider, screen)
        return _tool(found, registry, _folders(args), screen)
    if screen.as_json:
        return screen.result(document)
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
        problem = f"{file}: cannot be read: {e.strerror}"
        raise UserError("NOT_BUILT", problem, again, exit_code=4) from None
    except BadManifest as e:
        raise UserError("BAD_REGISTRY", f"{file}: {e}", again) from None


def _form(entry: Any, provider: str, screen: Screen) -> int:
    """Print one provider's form on stdout, so that it can be piped; its losses go to stderr."""
    try:
        form = form_of(entry, provider)
    except MissingForm as e:
        raise UserError("MISSING_FORM", str(e), "glassd registry build") from None
    losses = (entry.get("losses") or {}).get(provider, [])
    for loss in () if screen.as_json else losses:
        screen.note(f"note: {loss}")
    document = {"tool": entry["name"], "provider": provider, "form": form, "losses": losses}
    return screen.result(document, for_people(form))


def _tool(entry: Any, registry: Registry, folders: Path, screen: Screen) -> int:
    """Print all details of one tool."""
    tool = next(t for app in registry.apps for t in app.tools if t.name == entry["name"])
    doc = tool_docs.documentation(tool, folders)
    named = {"encodedName": entry["encodedName"], "summary": tool_docs.summary(tool)}
    known = {**tool_docs.metadata(tool), **named}
    written = describe.read(tool, folders)
    if screen.as_json:
        return screen.result(
            {
                **known,
                **describe.data(tool, written),
                "description": tool.description,
                "parameters": tool.raw["inputSchema"],
                "documentation": doc,
                "providers": sorted(entry.get("providerSchemas", {})),
                "withheld": entry.get("withheld", {}),
            }
        )
    shown = {k: ", ".join(v) if isinstance(v, list) else for_people(v) for k, v in known.items()}
    screen.table(list(shown.items()))
    screen.line("\n" + for_people(describe.text(tool, written)))
    screen.line("\n" + for_people(dict(tool.raw["inputSchema"])))
    screen.line("\n" + (doc or "(no documentation)").strip())
    return 0
