"""Story: a server on the network wants its owner to sign in, who has glasses, another device
with a browser, and `glassd servers`.
"""

import json
import logging
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.config.model import McpConfig, McpServerConfig
from edge.display.sign_in import code_of
from tests.scenarios.world import SOON_S, until, world
from tests.unit.commands.test_cli import glassd
from tests.unit.mcp.client.office import Office, echo
from tests.unit.mcp.client.web import web

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

WORD = "hush-7261"
"""Every token begins with it."""


@pytest.fixture(scope="module")
def logged():
    """Every line that was logged, at every level."""
    lines, root = [], logging.getLogger()

    class Keeper(logging.Handler):
        def emit(self, record):
            lines.append(logging.Formatter().format(record))

    keeper, before = Keeper(logging.DEBUG), root.level
    root.addHandler(keeper)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(keeper)
    root.setLevel(before)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def office():
    """A server of which nothing is to be had before somebody signs in."""
    made = Office(echo=echo)
    made.word = WORD
    async with web(made) as made.origin:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory, office, logged):
    """A daemon that hears of the server when the glasses are there: what they cannot draw yet
    is no part of this story.
    """
    async with world(tmp_path_factory.mktemp("sign_in")) as made:
        await made.switch_glasses_on()
        await made.start_daemon()
        await made.ready()
        server = {
            "id": "files",
            "name": "The files",
            "url": office.origin + "/mcp",
            "allowed_tools": ("echo",),
            "confirm": "never",
        }
        await made.daemon.own_tools.reload(
            replace(made.daemon.settings, mcp=McpConfig(servers=(McpServerConfig(**server),)))
        )
        made.sections["mcp"] = {
            "servers": [{**server, "allowed_tools": ["echo"]}]
        }  # for the daemons after it
        yield made


async def ask(place, *words):
    ran = await glassd(*words, "--json", "--socket", str(place.socket))
    return ran.code, ran.json


def told(place):
    return next(one for one in place.daemon.servers.describe() if one["id"] == "files")


async def wanted(place, but=""):
    """Wait until a sign-in is asked for (another than the one that was); what `glassd servers`
    tells of it.
    """
    await until(
        lambda: (
            told(place).get("authorize_url", but) != but and told(place)["status"] == "authorizing"
        ),
        lambda: json.dumps(told(place)),
    )
    code, document = await ask(place, "servers")
    (one,) = document["servers"]
    assert (code, one["status"], one["sign_in_code"]) == (
        0,
        "authorizing",
        code_of(one["authorize_url"]),
    )
    return one


async def browse(url):
    """Open it as a person would who agrees; gives the address the browser is sent to, which is
    on a machine of its own.
    """
    async with httpx.AsyncClient(timeout=SOON_S, trust_env=False) as http:
        answer = await http.get(url)
    assert answer.status_code == 302
    return answer.headers["location"]


async def call(place):
    """Call the tool, once it is there."""
    await until(
        lambda: place.daemon.registry.snapshot().find("files:echo"), lambda: json.dumps(told(place))
    )
    return await place.call("files:echo", {"a": "b"})


def on_lens(place, url):
    """Whether the lens shows the URL as a QR code, module for module, at its left edge."""
    import segno

    lens, matrix = (
        place.mock.glasses.lens,
        segno.make(url, error="l", boost_error=False, micro=False).matrix,
    )
    modules = len(matrix) + 4  # with its light border
    scale = min(lens.width, lens.height) // modules
    box = lens.image.crop((0, 0, scale * modules, lens.height)).getbbox()
    if box is None or box[3] - box[1] != scale * modules:
        return False
    at = lambda x, y: lens.image.getpixel(((x + 2) * scale, box[1] + (y + 2) * scale)) == 0  # noqa: E731
    return all(at(x, y) == bool(dark) for y, row in enumerate(matrix) for x, dark in enumerate(row))


@pytest.mark.requirement("S1-48", "S1-34", "I6-sign-in", "S1-36")
async def test_a_sign_in_is_read_on_the_lens_done_in_a_browser_and_repeated_only_when_withdrawn(
    place, office, logged
):
    first = await wanted(place)
    await until(
        lambda: on_lens(place, first["authorize_url"]),
        lambda: f"the QR code; the lens shows {place.lens()}",
    )
    assert first["sign_in_code"] in " ".join(
        await place.lens_shows("The files", "glassd servers authorize")
    )

    code, finished = await ask(place, "servers", "authorize", "files", "mistyped")
    assert (code, finished["status"]) == (1, "authorizing")
    await ask(place, "servers", "refresh", "files")
    first, mistyped = await wanted(place, but=first["authorize_url"]), first
    await until(
        lambda: on_lens(place, first["authorize_url"]),
        lambda: (
            "the QR code in place of the one of "
            f"{mistyped['sign_in_code']}; the lens shows {place.lens()}"
        ),
    )

    address = await browse(first["authorize_url"])
    code, finished = await ask(
        place, "servers", "authorize", first["sign_in_code"].lower(), address
    )  # as it was read, not by its id
    assert (code, finished["status"], "authorize_url" in finished) == (0, "connected", False), (
        finished
    )
    assert (await call(place)).data == {"a": "b"}
    kept = place.folder / "state/upstream/files.json"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert WORD in kept.read_text()

    await place.stop_daemon()
    await place.start_daemon()
    await place.ready()
    assert (await call(place)).data == {"a": "b"}
    assert (len(office.visited), office.grants) == (
        1,
        ["authorization_code"] * 2,
    )  # nobody was asked again

    office.good.clear()
    assert (await call(place)).error.code == "AUTH"
    second = await wanted(place, but=first["authorize_url"])
    refused = (await call(place)).to_json()["error"]
    assert (refused["type"], refused["reauthRequired"], refused["details"]["authorizeUrl"]) == (
        "AUTH",
        True,
        second["authorize_url"],
    )
    await until(
        lambda: on_lens(place, second["authorize_url"]),
        lambda: f"the second QR code; the lens shows {place.lens()}",
    )
    bare = parse_qs(urlsplit(await browse(second["authorize_url"])).query)["code"][0]
    code, finished = await ask(place, "servers", "authorize", "files", bare)
    assert (code, finished["status"]) == (0, "connected"), finished
    assert (await call(place)).data == {"a": "b"}

    _, document = await ask(place, "servers")
    audited = (place.folder / "state/audit/calls.jsonl").read_text()
    secret = {
        WORD,
        *(
            str(parse_qs(form)["code_verifier"][0])
            for form in (r.body.decode() for r in office.asked if r.path == "/token")
        ),
    }
    for where in (
        json.dumps(document),
        json.dumps(place.daemon.status(), default=str),
        json.dumps(place.happened, default=str),
        audited,
        "\n".join(logged),
    ):
        assert where
        assert not [word for word in secret if word in where]
