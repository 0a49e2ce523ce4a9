"""The status document: every layer in its own words, and one next action, the most urgent one."""

import pytest
from msgspec.structs import replace

from edge.daemon.status import Layers, MachineLook, StatusFault, document, next_action
from edge.observability.metrics import Metrics
from edge.ports import GlassesStatus, SideStatus, UplinkStatus
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.sides import Side

CAPS = Capabilities.of("mock:display", {"display": True}, origin=Origin.FIRMWARE, now=10.0)
READY = GlassesStatus(state="READY", ready=True, model="mock:display", capabilities=CAPS)
UP = UplinkStatus(configured=True, up=True, broker="b:1")


def layers(**changes):
    fields = {
        "version": "1",
        "edge_id": "e",
        "radio": "bluez",
        "glasses": READY,
        "uplink": UP,
        "registry": {"tools": 3},
        "calls": {"running": 0},
        "audio": {"speech": True},
        "services": [{"name": "link", "state": "running"}],
    }
    return Layers(**{**fields, **changes})


def test_when_all_is_well_there_is_nothing_to_do():
    assert next_action(layers()) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"alarms": {"db": "The database was damaged"}}, "The database was damaged"),
        (
            {"configuration": {"needs_restart": ["glasses.radio"]}},
            (
                "What changed in the configuration needs a restart to take force "
                "(glasses.radio): systemctl restart glassd"
            ),
        ),
        ({"services": [{"name": "uplink", "state": "crashed"}]}, "service uplink keeps failing"),
        (
            {"glasses": GlassesStatus(state="RESTING", hint="bluetoothctl power on")},
            "bluetoothctl power on",
        ),
        ({"glasses": GlassesStatus(state="SEEKING")}, "Switch your glasses on"),
        (
            {
                "glasses": GlassesStatus(
                    state="SEEKING", model="mock:display", capabilities=CAPS, stale=True
                )
            },
            "are away",
        ),
        (
            {
                "glasses": replace(
                    READY, sides={Side.LEFT: SideStatus(), Side.RIGHT: SideStatus("lost")}
                )
            },
            "The right side of the glasses is away",
        ),
        ({"uplink": UplinkStatus(configured=True, broker="b:1")}, "broker b:1 is not reachable"),
        ({"uplink": UplinkStatus(configured=True, hint="wrong password")}, "wrong password"),
        (
            {
                "registry": {
                    "own": {"problems": ["a.toml: is no TOML"], "withheld": {"my:b": "no secret"}}
                },
                "uplink": UplinkStatus(),
            },
            "One of your own tools is left out (and 1 more): a.toml: is no TOML; glassd doctor",
        ),
        (
            {"registry": {"own": {"problems": [], "withheld": {"my:b": "no secret"}}}},
            "left out: my:b: no secret",
        ),
        (
            {
                "registry": {"own": {"problems": [], "withheld": {}}},
                "uplink": UplinkStatus(),
                "config_path": "/x.toml",
            },
            "[uplink] host and [cloud] url in /x.toml",
        ),
    ],
)
def test_the_next_action_is_the_one_that_helps(changes, says):
    assert says in next_action(layers(**changes))


def test_an_alarm_comes_before_everything_else():
    worst = layers(
        alarms={"db": "first"}, glasses=GlassesStatus(hint="second"), uplink=UplinkStatus()
    )
    assert next_action(worst) == "first"


def test_what_may_lose_calls_comes_before_what_only_misses_tools():
    raised = (
        "server.files",
        "registry",
        "uplink.refused",
        "uplink.taken_over",
        "configuration",
        "edge_id",
        "database",
        "storage",
    )
    ill = layers(alarms={name: f"{name} is wrong" for name in raised})
    assert list(document(ill, now=15.0)["alarms"]) == [
        "storage",
        "database",
        "edge_id",
        "configuration",
        "uplink.taken_over",
        "uplink.refused",
        "server.files",
        "registry",
    ]
    assert next_action(ill) == "storage is wrong"


def test_the_document_names_every_layer_and_ages_the_capabilities():
    shown = document(layers(), now=15.0)
    assert list(shown) == [
        "version",
        "edge_id",
        "adapter",
        "link",
        "glasses",
        "uplink",
        "registry",
        "outbox",
        "calls",
        "audio",
        "microphone",
        "wearer",
        "services",
        "alarms",
        "configuration",
        "next_action",
    ]
    assert shown["glasses"]["capabilities"]["display"] == {
        "value": True,
        "origin": "firmware",
        "ageS": 5.0,
    }
    assert shown["adapter"]["state"] == "ok"
    assert shown["uplink"]["state"] == "up"


def test_states_are_what_the_layers_say_not_what_one_hopes():
    away = GlassesStatus(
        state="RESTING",
        reason="gone",
        hint="plug it in",
        issue="no_adapter",
        capabilities=CAPS,
        stale=True,
    )
    shown = document(layers(glasses=away, uplink=UplinkStatus()), now=15.0)
    assert shown["glasses"]["state"] == "away"
    assert shown["glasses"]["stale"] is True
    assert shown["adapter"] == {
        "radio": "bluez",
        "state": "failing",
        "issue": "no_adapter",
        "reason": "gone",
        "hint": "plug it in",
    }
    assert (shown["link"]["issue"], shown["link"]["hint"]) == ("", "")
    assert shown["uplink"]["state"] == "not configured"
    never = document(layers(glasses=GlassesStatus()), now=0.0)
    assert never["glasses"]["state"] == "never seen"


@pytest.mark.requirement("S2-132")
def test_calls_are_those_in_flight_and_what_was_counted():
    metrics = Metrics()
    metrics.observe(
        {
            "toolId": "notes:list",
            "version": "1",
            "route": "local",
            "outcome": "answered",
            "ok": True,
            "duration": 7,
        }
    )
    shown = document(layers(calls={"running": 2, **metrics.summary()}), now=0.0)
    assert (shown["calls"]["running"], shown["calls"]["total"], shown["calls"]["errors"]) == (
        2,
        1,
        0,
    )
    assert shown["calls"]["tools"] == {
        "notes:list": {"calls": 1, "errors": 0, "avg_ms": 7, "p50_ms": 7, "p99_ms": 7}
    }


def test_the_outbox_says_how_many_wait_and_how_old_the_oldest_is():
    waiting = document(
        layers(uplink=UplinkStatus(configured=True, outbox=7, outbox_oldest_s=120.04)), now=15.0
    )
    assert waiting["outbox"] == {"waiting": 7, "oldest_s": 120.0}
    assert document(layers(uplink=UplinkStatus(outbox_oldest_s=9.0)), now=15.0)["outbox"] == {
        "waiting": 0,
        "oldest_s": None,
    }


@pytest.mark.parametrize(
    "issue", ["not_found", "bond_lost", "stale_cache", "connected_elsewhere", "silent"]
)
def test_what_ails_the_link_is_not_blamed_on_the_adapter(issue):
    ill = GlassesStatus(
        state="RESTING",
        reason="…",
        issue=issue,
        hint="do this",
        step="ask",
        capabilities=CAPS,
        stale=True,
    )
    shown = document(layers(glasses=ill), now=0.0)
    assert shown["adapter"] == {
        "radio": "bluez",
        "state": "ok",
        "issue": "",
        "reason": "",
        "hint": "",
    }
    assert (shown["link"]["issue"], shown["link"]["hint"], shown["link"]["step"]) == (
        issue,
        "do this",
        "ask",
    )
    assert shown["next_action"] == "do this"


def test_a_link_that_is_up_may_have_an_issue_too():
    slow = GlassesStatus(
        state="READY", ready=True, mtu=23, issue="mtu_23", hint="off and on", capabilities=CAPS
    )
    shown = document(layers(glasses=slow), now=0.0)
    assert shown["link"]["issue"] == "mtu_23"
    assert shown["adapter"]["state"] == "ok"
    assert shown["next_action"] == "off and on"


def test_two_sides_are_reported_separately():
    sides = {Side.LEFT: SideStatus("lost", 40, "out of range"), Side.RIGHT: SideStatus(battery=80)}
    shown = document(
        layers(glasses=GlassesStatus(state="READY", ready=True, capabilities=CAPS, sides=sides)),
        now=0.0,
    )
    assert shown["glasses"]["sides"] == {
        "left": {"state": "lost", "battery": 40, "reason": "out of range"},
        "right": {"state": "up", "battery": 80, "reason": ""},
    }


@pytest.mark.requirement("I11-registry-said")
@pytest.mark.parametrize(
    ("cloud", "fix"),
    [
        (
            {"hint": "Whoever runs the cloud has to correct it"},
            "Whoever runs the cloud has to correct it",
        ),
        ({}, "It is fetched again by itself; at once: glassd registry sync"),
    ],
)
def test_a_registry_that_cannot_be_used_is_the_next_thing(cloud, fix):
    shown = document(
        layers(registry={"problem": "The cloud's registry cannot be used: x", "cloud": cloud}),
        now=15.0,
    )
    assert shown["next_action"] == f"The cloud's registry cannot be used: x. {fix}"


@pytest.mark.requirement("I11-folder-said")
def test_a_folder_that_cannot_be_read_is_a_line_and_the_next_thing():
    gone = StatusFault("folder", "[kb] folder /mnt/kb: there is no such folder", "mount it")
    shown = document(layers(seen=MachineLook(folders=(gone,))), now=15.0)
    assert shown["folders"] == {"state": "failing", "reason": gone.said}
    assert shown["next_action"] == f"{gone.said}: mount it"
    assert "folders" not in document(layers(), now=15.0)


def test_a_server_that_cannot_be_used_is_a_next_thing_too():
    gone = {"id": "files", "enabled": True, "error": "cannot be started", "tools": []}
    shown = document(layers(servers=(gone,)), now=15.0)
    assert shown["next_action"].startswith("The MCP server files cannot be used: cannot be started")
    assert (
        document(layers(servers=({**gone, "enabled": False},)), now=15.0)["next_action"]
        == document(layers(), now=15.0)["next_action"]
    )
