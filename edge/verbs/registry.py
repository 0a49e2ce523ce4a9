"""`glassd registry`: the tools of this installation, as the daemon starts with them. Needs no daemon."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from edge.verbs.screen import CliError, Screen
from tools_cache import build, manifest
from tools_cache.errors import BadManifest
from tools_cache.tool import Source


def run(args: Namespace, screen: Screen) -> int:
    file = Path(args.file) if args.file else build.ARTIFACT
    return {"build": _build, "check": _check, "show": _show}[args.action](file, screen)


def _build(file: Path, screen: Screen) -> int:
    report = _compiled(screen)
    try:
        build.write(report.text, file)
    except OSError as e:
        raise CliError("CANNOT_WRITE", f"{file}: cannot be written: {e.strerror}", "choose another: --file") from None
    return _summary(report, file, screen)


def _check(file: Path, screen: Screen) -> int:
    if not file.is_file():
        raise CliError("NOT_BUILT", f"{file}: there is no such file", f"glassd registry build --file {file}")
    report = _compiled(screen)
    if not build.up_to_date(report.text, file):
        raise CliError("NOT_UP_TO_DATE", f"{file} is not what the tools compile to", "glassd registry build")
    return _summary(report, file, screen)


def _show(file: Path, screen: Screen) -> int:
    try:
        body = file.read_bytes()
        registry = manifest.load(body, source=Source.LOCAL, per_tool_hardware=True)
    except OSError as e:
        raise CliError("NOT_BUILT", f"{file}: cannot be read: {e.strerror}", "glassd registry build", exit_code=4) from None
    except BadManifest as e:
        raise CliError("BAD_REGISTRY", f"{file}: {e}", "glassd registry build") from None
    if screen.as_json:
        screen.json(manifest.parse_json(body))
        return 0
    screen.table([(t.name, t.category, t.source.value, t.description.split(". ")[0]) for app in registry.apps for t in app.tools])
    screen.line(f"version {registry.version}")
    return 0


def _compiled(screen: Screen) -> Any:
    report = build.compile_tools()
    for warning in report.warnings if not screen.as_json else ():
        screen.note(f"warning: {warning}")
    if report.text is None:
        raise CliError("DOES_NOT_COMPILE", "the tools do not compile:\n  " + "\n  ".join(report.failures), "correct them, then again")
    return report


def _summary(report: Any, file: Path, screen: Screen) -> int:
    if screen.as_json:
        screen.json({"file": str(file), "tools": report.tools, "version": report.version, "warnings": list(report.warnings)})
    else:
        screen.line(f"{report.tools} tools, version {report.version}: {file}")
    return 0
