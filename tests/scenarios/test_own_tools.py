"""Story: somebody writes ten lines of TOML, and the glasses can do something new; with the
daemon's real doors and glasses.
"""

import asyncio
import json

import pytest
import pytest_asyncio

from edge.daemon import user_tools as own_tools
from edge.tools import user_tools
from tests.scenarios.world import until, world

pytestmark = pytest.mark.asyncio(loop_scope="session")

WEATHER = """
name = "my:weather"
description = "The weather of a town, as it is now."

[inputSchema]
type = "object"
required = ["town"]
properties.town = {{ type = "string" }}

[execution]
method = "GET"
url = "{url}/{{{{input.town}}}}"
headers = {{ Authorization = "Bearer ${{env.WEATHER_TOKEN}}" }}
"""
TOKEN = "hush/hush+0451"


class Station:
    """A weather station's HTTP server."""

    def __init__(self):
        self.heard = []
        self.url = ""

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heard.append(head)
        body = json.dumps({"text": "Sunny, twelve degrees"}).encode()
        writer.write(
            (
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
                b"application/json\r\nContent-Length: %d\r\n\r\n"
            )
            % len(body)
            + body
        )
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def station():
    made = Station()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


def entry(place, name):
    return place.daemon.registry.snapshot().find(name)


@pytest.mark.requirement("S3-01", "S3-09", "S3-11", "S3-12", "S3-37")
async def test_a_file_becomes_a_tool_that_answers_on_the_lens_and_waits_for_its_secret(
    tmp_path, station, caplog
):
    folder = tmp_path / "tools.d"
    folder.mkdir()
    (folder / "weather.toml").write_text(WEATHER.format(url=station.url))
    (folder / "broken.toml").write_text('name = "my:broken"\n')
    (folder / "clock.json").write_text(
        json.dumps({"name": "clock:now", "description": "Mine.", "execution": {"url": station.url}})
    )
    async with world(tmp_path) as place:
        place.sections["tools"] = {"folders": [str(folder)]}
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        assert entry(place, "my:weather") is None  # nothing was read yet

        (folder / "servers.json").write_text(
            json.dumps({"servers": [{"name": "home", "url": "https://h", "enabled": False}]})
        )
        await place.daemon.own_tools.reload()
        assert [(one["id"], one["enabled"]) for one in place.daemon.servers.describe()] == [
            ("home", False)
        ]
        hidden = entry(place, "my:weather").hidden
        assert hidden.startswith("${env.WEATHER_TOKEN} is not set")
        refused = await place.call("my:weather", {"town": "Rome"})
        assert (refused.error.code, station.heard) == ("TOOL_UNAVAILABLE", [])
        assert entry(place, "clock:now").definition.description != "Mine."
        left_out = " ".join(place.daemon.status()["registry"]["dropped"])
        assert "broken.toml" in left_out
        assert "clock:now" in left_out

        secrets = tmp_path / "credentials"
        secrets.mkdir()
        (secrets / "WEATHER_TOKEN").write_text(TOKEN + "\n")
        place.daemon.own_tools.env = {"CREDENTIALS_DIRECTORY": str(secrets)}
        hidden_in_logs = []
        place.daemon.own_tools.hide = hidden_in_logs.append
        await place.daemon.own_tools.reload()
        assert {TOKEN, "hush%2Fhush%2B0451"} <= set(hidden_in_logs)
        answer = await place.call("my:weather", {"town": "Rome"})
        assert answer.data == {"text": "Sunny, twelve degrees"}
        assert (answer.meta["route"], answer.meta["delivery"]) == ("gateway", "shown")
        await place.lens_shows("Weather", "Sunny,", "twelve")
        assert station.heard[0].startswith("GET /Rome HTTP/1.1")
        assert f"authorization: bearer {TOKEN}" in station.heard[0].lower()
        assert TOKEN not in caplog.text
        assert TOKEN not in json.dumps(place.happened, default=str)

        (folder / "weather.toml").unlink()
        await place.daemon.own_tools.reload()
        assert entry(place, "my:weather") is None
        assert (await place.call("my:weather", {"town": "Rome"})).error.code == "TOOL_NOT_FOUND"
        await until(
            lambda: any(
                "my:weather" in h["removed"]
                for h in place.happened
                if h["event"] == "tools_list_changed"
            ),
            "list changed",
        )


@pytest.mark.requirement("S3-35")
async def test_a_child_that_gives_no_answer_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(own_tools, "_CHILD", "import sys; sys.exit(3)")
    with pytest.raises(own_tools.NotRead, match="ended with 3"):
        await own_tools.read_again([tmp_path])
    monkeypatch.setattr(own_tools, "_CHILD", "import time; time.sleep(60)")
    with pytest.raises(own_tools.NotRead, match="no answer"):
        await own_tools.read_again([tmp_path], limit_s=0.05)
    monkeypatch.setattr(
        own_tools,
        "_CHILD",
        "import sys; sys.stdout.write('cedge.core.tools.user_tools\\nNewer\\n.')",
    )
    with pytest.raises(
        own_tools.NotRead, match=r"another version \(AttributeError\): restart glassd"
    ):
        await own_tools.read_again([tmp_path])


async def test_what_lies_in_the_working_directory_is_no_library_of_the_child(tmp_path, monkeypatch):
    (tmp_path / "tomllib.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert (await own_tools.read_again([tmp_path])).problems == ()


async def test_what_the_child_reads_is_what_is_read_here(tmp_path):
    (tmp_path / "weather.toml").write_text(WEATHER.format(url="https://h"))
    assert await own_tools.read_again([tmp_path]) == user_tools.read([tmp_path])
