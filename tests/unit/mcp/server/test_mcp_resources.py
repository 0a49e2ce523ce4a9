"""Resources and prompts of the MCP server: generated from what the daemon says, and only from
that.
"""

import base64
import io
import json

import pytest
from PIL import Image

from edge.mcp.server import prompts, resources
from firmware_bridge.messages import Tile
from tools_cache.names import alias


def listed(name, **more):
    return {
        "name": name,
        "description": f"What {name} does.",
        "summary": f"In short: {name}.",
        "category": "action",
        "source": "local",
        "sideEffects": "writes",
        "requiresConfirmation": "never",
        "allowedModes": ["text", "voice"],
        "state": "offered",
        "hidden": "",
        **more,
    }


TOOLS = [
    listed("glasses:show_text", source="glasses"),
    listed("notes:list", category="retrieval"),
    listed("pay.ments:send", requiresConfirmation="always"),
    listed("a-b:c_d", state="available"),
    listed("glasses:say", source="glasses", state="hidden", hidden="no speaker"),
]
STATUS = {
    "version": "0.1.0",
    "edge_id": "e1",
    "next_action": "",
    "link": {"state": "READY", "reason": "", "issue": "", "hint": "", "attempts": 0},
    "uplink": {"state": "down", "reason": "no route", "broker": "mqtt.example:8883"},
    "glasses": {
        "state": "ready",
        "model": "mock:display",
        "firmware": "1.0",
        "address": "AA:BB:CC:DD:EE:FF",
        "battery": 80,
        "worn": True,
        "stale": False,
        "capabilities": {
            "display": {"value": True, "origin": "firmware"},
            "display.width": {"value": 64},
            "display.height": {"value": 32},
            "display.bpp": {"value": 1},
        },
    },
}
LENS = {"scene": "c1", "page": 1, "pages": 1, "lines": [], "drawn": {"lines": [], "tiles": []}}


class Daemon:
    """The control socket, below the code under test."""

    def __init__(self, **changes):
        self.lens, self.asked = {**LENS, **changes}, []

    async def __call__(self, path):
        self.asked.append(path)
        name, _, query = path.partition("?")
        if name == "/v1/tools":
            return {
                "version": "1.0.0abc",
                "tools": TOOLS if "all=1" in query else [t for t in TOOLS if not t["hidden"]],
            }
        if name == "/v1/tools/one":
            tool = "pay.ments:send" if query == "tool=pay.ments%3Asend" else query
            return {
                "tool": tool,
                "summary": "In short.",
                "documentation": "# written\n" if tool == "pay.ments:send" else None,
            }
        return self.lens if name == "/v1/lens" else STATUS


def picture(contents):
    assert contents["mimeType"] == "image/png"
    return Image.open(io.BytesIO(base64.b64decode(contents["blob"]))).convert("L")


@pytest.mark.requirement("I6-resources")
async def test_the_registry_lists_callable_tools_by_their_aliases():
    told = json.loads((await resources.read_resource("registry://tools", Daemon()))["text"])
    assert [tool["name"] for tool in told["tools"]] == [
        alias(tool["name"]) for tool in TOOLS if not tool["hidden"]
    ]
    assert [tool["canonical"] for tool in told["tools"]] == [
        "glasses:show_text",
        "notes:list",
        "pay.ments:send",
        "a-b:c_d",
    ]
    assert told["version"] == "1.0.0abc"
    assert told["tools"][2]["requiresConfirmation"] == "always"


@pytest.mark.requirement("I6-resources")
@pytest.mark.parametrize("name", ["pay-ments__send", "pay.ments:send"])
async def test_a_tools_documentation_is_read_by_its_alias_or_its_name(name):
    contents = await resources.read_resource(f"registry://tools/{name}/doc", Daemon())
    assert (contents["mimeType"], contents["text"]) == ("text/markdown", "# written\n")


async def test_a_tool_without_documentation_shows_its_summary():
    contents = await resources.read_resource(resources.doc_uri("glasses:say"), Daemon())
    assert contents["text"] == "# glasses:say\n\nIn short.\n"


@pytest.mark.parametrize(
    "uri",
    [
        "registry://tools/none__such/doc",
        "registry://tools//doc",
        "registry://tools/a/b/doc",
        "registry://tool",
        "glasses://",
        "file:///etc/passwd",
        "",
    ],
)
async def test_what_is_not_there_is_said_to_be_not_there(uri):
    with pytest.raises(resources.NoResource):
        await resources.read_resource(uri, Daemon())


@pytest.mark.requirement("I6-resources")
async def test_the_lens_is_drawn_to_the_pixel():
    tile = Tile(8, 4, 8, 2, 1, b"\xf0\x0f")
    drawn = {
        "lines": [],
        "tiles": [
            {
                "x": 8,
                "y": 4,
                "width": 8,
                "height": 2,
                "bpp": 1,
                "pixels": base64.b64encode(tile.pixels).decode(),
            }
        ],
    }
    daemon = Daemon(drawn=drawn)
    shown = picture(await resources.read_resource("glasses://lens", daemon))
    lit = {(x, y) for x in range(64) for y in range(32) if shown.getpixel((x, y))}
    assert shown.size == (64, 32)
    assert lit == {(x, 4) for x in range(8, 12)} | {(x, 5) for x in range(12, 16)}
    assert "/v1/lens?exact=true" in daemon.asked


async def test_words_are_where_the_glasses_have_them():
    lines = [{"row": 0, "text": "left", "x": 0}, {"row": 0, "text": "W", "x": 48}]
    shown = picture(
        await resources.read_resource("glasses://lens", Daemon(drawn={"lines": lines, "tiles": []}))
    )
    assert shown.crop((0, 0, 40, 27)).getbbox()
    assert shown.crop((48, 0, 64, 27)).getbbox()


async def test_a_dark_lens_is_a_dark_picture():
    assert picture(await resources.read_resource("glasses://lens", Daemon())).getbbox() is None


@pytest.mark.requirement("I6-resources")
async def test_the_status_tells_what_concerns_an_agent_and_no_address():
    raw = (await resources.read_resource("glasses://status", Daemon()))["text"]
    told = json.loads(raw)
    assert (told["glasses"]["battery"], told["glasses"]["worn"], told["network"]) == (
        80,
        True,
        {"state": "down", "reason": "no route"},
    )
    assert told["glasses"]["capabilities"]["display"] is True
    assert "AA:BB" not in raw
    assert "mqtt.example" not in raw


async def test_aliases_are_completed():
    assert await resources.complete("glasses__s", Daemon()) == ["glasses__show_text"]
    assert len(await resources.complete("", Daemon())) == 4
    assert prompts.complete("mode", "v") == ["voice"]
    assert prompts.complete("other", "") == []


def test_what_is_listed_can_be_read():
    assert [each["uri"] for each in resources.list_resources()] == [
        "glasses://lens",
        "glasses://status",
        "registry://tools",
    ]
    assert resources.list_templates()[0]["uriTemplate"] == "registry://tools/{alias}/doc"
    assert prompts.list_prompts()[0]["name"] == prompts.AGENT


def test_lists_are_in_the_form_of_the_protocol():
    types = pytest.importorskip("mcp.types")
    for each in resources.list_resources():
        types.Resource.model_validate(each)
    types.ResourceTemplate.model_validate(resources.list_templates()[0])
    types.Prompt.model_validate(prompts.list_prompts()[0])


# ------------------------------------------------------------------ prompts


async def prompt(args=None, daemon=None):
    told = await prompts.get_prompt(prompts.AGENT, args, daemon or Daemon())
    (message,) = told["messages"]
    return message["content"]["text"]


@pytest.mark.requirement("I6-prompts")
async def test_the_agent_loop_names_the_tools_that_are_offered_and_no_other():
    said = await prompt()
    for tool in TOOLS:
        assert (alias(tool["name"]) in said) is (tool["state"] == "offered"), tool["name"]
    assert "Tools that ask the wearer before they act: pay-ments__send" in said
    assert "{" not in said
    assert "On the glasses" in said


@pytest.mark.requirement("I6-prompts")
async def test_a_voice_gets_the_loop_of_a_voice():
    daemon = Daemon()
    said = await prompt({"mode": "voice"}, daemon)
    assert "one or two sentences" in said
    assert daemon.asked == ["/v1/tools?mode=voice&after="]


@pytest.mark.parametrize(
    ("name", "args"),
    [("other", None), (prompts.AGENT, {"mode": "song"}), (prompts.AGENT, {"mood": "text"})],
)
async def test_an_unknown_prompt_or_argument_is_refused(name, args):
    with pytest.raises(prompts.NoPrompt):
        await prompts.get_prompt(name, args, Daemon())
