"""The mini-app of docs/devcloud.md, run as it is printed there, and called from glasses at once."""

import json
import shutil
import sys
from contextlib import closing

import pytest

from tests.documents.blocks import block, shows
from tests.documents.place import Place

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(240)]
GUIDE = "docs/devcloud.md"
CURL = """#!{python}
import sys, time, urllib.request
words, headers, data, url = sys.argv[1:], {{}}, None, ""
while words:
    word = words.pop(0)
    if word == "-H": name, _, value = words.pop(0).partition(": "); headers[name] = value
    elif word == "--json":
        given, headers["Content-Type"] = words.pop(0), "application/json"
        data = sys.stdin.buffer.read() if given == "@-" else given.encode()
    elif word == "--retry": words.pop(0)
    elif word not in ("-s", "--retry-connrefused"): url = word
for left in range(300, -1, -1):
    try:
        sys.stdout.buffer.write(urllib.request.urlopen(urllib.request.Request(url, data, headers)).read()); break
    except ConnectionError: time.sleep(0.1)
    except OSError as e:
        if not left or "refused" not in str(e): raise
        time.sleep(0.1)
"""  # noqa: E501
"""What these lines need of curl, for a machine that has none."""


@pytest.fixture
def place():
    with closing(Place()) as place:
        if not shutil.which("curl"):
            place.write("bin/curl", CURL.format(python=sys.executable)).chmod(0o755)
            place.env["PATH"] = f"{place.folder / 'bin'}:{place.env['PATH']}"
        yield place


@shows(GUIDE, "from edge.devcloud.appserver import AppServer", "CLOUD=http://127.0.0.1:8787")
@pytest.mark.requirement("I5-cloud-sdk", "I11-added-tool", "I11-documents")
def test_the_mini_app_runs_as_printed_and_is_on_the_lens_at_once(place):
    place.write("my.toml", block(GUIDE, "version = 1\n[glasses]").text)
    for line in block(GUIDE, "glassd devcloud --http").lines[:3]:
        place.start(line)
    place.until(place.is_ready, "cloud, glasses and daemon are ready")
    code = block(GUIDE, "from edge.devcloud.appserver import AppServer").text
    assert len([line for line in code.splitlines() if line]) == 10
    place.write("greeter.py", code)
    shell = block(GUIDE, "CLOUD=http://127.0.0.1:8787").text
    at_once = "echo; glassd call com.example.greeter:greet name=Ada --json; glassd lens; kill $!\n"
    handed_in, called, envelope, *lens = place.run(
        shell.replace("tools\n", "tools; echo\n") + at_once
    ).splitlines()
    handed_in, called = json.loads(handed_in), json.loads(called)
    assert (handed_in["packageName"], handed_in["tools"]) == ("com.example.greeter", ["greet"])
    assert called == {"success": True, "content": {"greeted": "Ada"}}
    assert json.loads(envelope)["data"] == {"greeted": "Ada"}
    assert "Hello Ada!" in "".join(lens)
