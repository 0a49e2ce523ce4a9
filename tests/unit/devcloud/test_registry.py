"""One version over all apps; what developers handed in survives a restart."""

import hashlib
import json
from copy import deepcopy

import pytest
import rfc8785

from edge.devcloud.definitions import check_submission
from edge.devcloud.registry import AppRegistry, InstalledApp
from tools_cache.errors import BadDefinition, BadToolName

TOOL = {
    "name": "go",
    "description": "goes",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}
CAMERA = ({"type": "CAMERA", "level": "REQUIRED"},)


def two_apps():
    return [
        InstalledApp("com.z.last", "Z", (TOOL,), public_url="http://z", api_key_hash="hush"),
        InstalledApp("com.a.first", "A", (TOOL,), CAMERA),
    ]


def test_the_version_is_the_start_of_the_hash_over_canonical_apps():
    made = json.loads(AppRegistry(two_apps()).body)
    assert made["sha256"] == hashlib.sha256(rfc8785.dumps(made["apps"])).hexdigest()
    assert made["version"] == "1.0." + made["sha256"][:8]


def test_the_order_of_installation_does_not_matter():
    assert AppRegistry(two_apps()).body == AppRegistry(reversed(two_apps())).body


def test_the_document_gives_away_neither_address_nor_key():
    text = AppRegistry(two_apps()).body.decode()
    assert "http://z" not in text
    assert "hush" not in text


def test_a_tool_is_found_by_its_full_name_only():
    registry = AppRegistry(two_apps())
    assert registry.find("com.a.first:go").app.package == "com.a.first"
    assert registry.find("com.a.first:stop") is None
    assert registry.find("com.b.none:go") is None
    with pytest.raises(BadToolName):
        registry.find("go")


def test_the_listing_names_tools_fully_and_changes_nothing_else():
    assert AppRegistry(two_apps()).listing(None) == [
        {**TOOL, "name": "com.a.first:go"},
        {**TOOL, "name": "com.z.last:go"},
    ]


@pytest.mark.requirement("S0-10", "S0-12")
@pytest.mark.parametrize(
    ("has", "packages"),
    [
        (None, ["com.a.first", "com.z.last"]),
        ({"camera": True}, ["com.a.first", "com.z.last"]),
        ({"camera": False}, ["com.z.last"]),
        ({}, ["com.z.last"]),
    ],
)
def test_an_app_that_lacks_its_hardware_is_left_out_whole(has, packages):
    assert [t["name"].partition(":")[0] for t in AppRegistry(two_apps()).listing(has)] == packages


def test_optional_hardware_and_exist_hide_nothing():
    app = InstalledApp(
        "com.a.b",
        "A",
        (TOOL,),
        ({"type": "CAMERA", "level": "OPTIONAL"}, {"type": "EXIST", "level": "REQUIRED"}),
    )
    assert app.lacks({}) == ()


def test_a_submission_makes_a_new_version():
    registry = AppRegistry(two_apps())
    before = registry.version, registry.sha256
    registry.restore([check_submission("com.n.new", [TOOL])])
    assert registry.version != before[0]
    assert registry.etag == f'"{registry.sha256}"' != f'"{before[1]}"'
    assert registry.find("com.n.new:go") is not None


def test_an_update_keeps_what_it_does_not_say():
    registry = AppRegistry(two_apps())
    registry.restore([check_submission("com.z.last", [{**TOOL, "name": "stop"}])])
    app = registry.app("com.z.last")
    assert (app.name, app.public_url, app.api_key_hash) == ("Z", "http://z", "hush")
    assert registry.find("com.z.last:go") is None


def test_an_app_with_its_own_address_is_not_started():
    registry = AppRegistry([InstalledApp("com.z.last", "Z", (TOOL,), command=("run", "it"))])
    assert registry.merged(check_submission("com.z.last", [TOOL])).command == ("run", "it")
    moved = registry.merged(
        check_submission("com.z.last", {"tools": [TOOL], "publicUrl": "http://mine/"})
    )
    assert (moved.command, moved.public_url) == ((), "http://mine")


def test_there_is_room_for_so_many_apps_and_an_update_needs_none(monkeypatch):
    monkeypatch.setattr("edge.devcloud.registry.MAX_APPS", 2)
    registry = AppRegistry(two_apps())
    assert registry.merged(check_submission("com.z.last", [TOOL])).package == "com.z.last"
    with pytest.raises(BadDefinition, match="apps: there are 2 already"):
        registry.merged(check_submission("com.n.new", [TOOL]))


def test_what_a_listing_gives_away_is_a_copy():
    registry = AppRegistry([InstalledApp("com.a.first", "A", (deepcopy(TOOL),))])
    before = registry.body
    listed = registry.listing(None)
    listed[0]["inputSchema"]["properties"].clear()
    listed[0]["description"] = "mine"
    assert (registry.body, registry.listing(None)[0]["inputSchema"]) == (
        before,
        {"type": "object", "properties": {"n": {"type": "integer"}}},
    )


def test_what_a_user_took_off_is_not_listed():
    assert [
        t["name"] for t in AppRegistry(two_apps()).listing(None, installed="com.z.last".__eq__)
    ] == ["com.z.last:go"]
