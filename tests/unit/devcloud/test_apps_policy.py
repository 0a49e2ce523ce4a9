"""The apps that show the edge's policies: weather to be kept, a calendar to be asked about, a
library to be budgeted.
"""

import concurrent.futures
import json

import pytest
from hypothesis import given, strategies as st

from edge.devcloud.apps import calendar, search, weather
from edge.devcloud.main import sample_apps
from edge.devcloud.sdk import CallContext
from tools_cache.api.tool import Source
from tools_cache.registry.manifest import definition

ME, YOU = CallContext("me"), CallContext("you")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSD_APP_STATE_DIR", str(tmp_path / "app"))
    monkeypatch.delenv(weather.SEASON_ENV, raising=False)
    return tmp_path / "app"


def ask(module, name, context=ME, **args):
    return module.app._tools[name].handler(args, context)


def in_force(package, name):
    tools = {t["name"]: t for a in sample_apps() if a.package == package for t in a.tools}
    return definition(package, tools[name], source=Source.CLOUD)


def test_what_the_edge_goes_by_is_said_of_each():
    forecast = in_force("com.example.weather", "forecast")
    assert (forecast.category, forecast.read_only, forecast.idempotent, forecast.cache_ttl_s) == (
        "retrieval",
        True,
        True,
        3600.0,
    )
    create, events = (
        in_force("com.example.calendar", "create_event"),
        in_force("com.example.calendar", "list_events"),
    )
    assert (create.category, create.read_only, create.idempotent, create.requires_confirmation) == (
        "action",
        False,
        False,
        "always",
    )
    assert (events.category, events.read_only, events.requires_confirmation) == (
        "retrieval",
        True,
        "never",
    )
    found = in_force("com.example.search", "kb_search")
    assert (
        found.category,
        found.read_only,
        found.input_schema["properties"]["top_k"]["default"],
    ) == ("retrieval", True, 5)


# ------------------------------------------------------------------ weather


def test_the_weather_of_a_place_is_the_same_until_the_season_changes(state, monkeypatch):
    first = ask(weather, "forecast", place="Paris")
    assert ask(weather, "forecast", place=" paris ")["data"]["days"] == first["data"]["days"]
    assert ask(weather, "forecast", place="Oslo")["data"]["days"] != first["data"]["days"]
    monkeypatch.setenv(weather.SEASON_ENV, "autumn")
    second = ask(weather, "forecast", place="Paris")
    assert second["data"] != first["data"]
    state.mkdir()
    (state / weather.SEASON_FILE).write_text("winter\n")
    assert ask(weather, "forecast", place="Paris")["data"] not in (first["data"], second["data"])


@given(st.text(min_size=1, max_size=50), st.text(max_size=10))
def test_any_place_has_weather_that_could_be(place, when):
    days = weather.forecast(place, when)
    assert [d["day"] for d in days] == ["today", "tomorrow", "the day after"]
    assert all(-11 <= d["low"] < d["high"] <= 31 and 0 <= d["wind"] < 60 for d in days)
    assert all(d["low"] <= 0 for d in days if d["sky"] == "snow")


def test_no_place_is_no_question():
    with pytest.raises(ValueError, match="place: must not be blank"):
        ask(weather, "forecast", place="   ")


# ------------------------------------------------------------------ calendar


def test_an_event_is_written_for_its_owner_and_listed_soonest_first(state):
    late = ask(
        calendar,
        "create_event",
        title=" Dinner  out ",
        start="2026-05-04 20:00",
        attendees=["Ann", "Bo"],
    )
    assert late["data"] == {
        "number": 1,
        "title": "Dinner out",
        "start": "2026-05-04T20:00",
        "attendees": ["Ann", "Bo"],
    }
    assert late["render"]["display"]["text"] == "Dinner out\n2026-05-04 20:00\nwith Ann, Bo"
    ask(calendar, "create_event", title="Stand-up", start="2026-05-04T09:30:15")
    ask(calendar, "create_event", YOU, title="Yours", start="2026-05-01")
    listed = ask(calendar, "list_events")["data"]
    assert ([e["title"] for e in listed["events"]], listed["count"]) == (
        ["Stand-up", "Dinner out"],
        2,
    )
    assert ask(calendar, "list_events", YOU)["data"]["count"] == 1
    assert len((state / calendar.EVENTS_FILE).read_text().splitlines()) == 3


def test_each_run_adds_one_line_also_with_other_writers(state):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: ask(calendar, "create_event", title=f"e{n}", start="2026-05-04T09:00"),
                range(40),
            )
        )
    numbers = [
        json.loads(line)["number"]
        for line in (state / calendar.EVENTS_FILE).read_text().splitlines()
    ]
    assert numbers == list(range(1, 41))


def test_a_calendar_that_cannot_take_an_event_says_why_and_writes_nothing(state, monkeypatch):
    with pytest.raises(ValueError, match="start: 'tomorrow at' is no date"):
        ask(calendar, "create_event", title="x", start="tomorrow at")
    with pytest.raises(ValueError, match="title: must not be blank"):
        ask(calendar, "create_event", title=" ", start="2026-05-04T09:00")
    monkeypatch.setattr(calendar, "MAX_EVENTS", 0)
    assert (
        ask(calendar, "create_event", title="x", start="2026-05-04T09:00")["error"]["code"]
        == "CONFLICT"
    )
    assert not state.exists()
    assert ask(calendar, "list_events")["data"] == {"events": [], "count": 0}


# ------------------------------------------------------------------ search


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what is a waveguide?", "Waveguide"),
        ("how long does the battery last", "Battery"),
        ("idempotency", "Idempotency key"),
        ("MQTT broker", "MQTT"),
    ],
)
def test_what_is_asked_for_comes_first(query, first):
    assert search.search(query, 3)[0][1].title == first


MANY = "glasses radio voice messages devices tool eye phone keys request nod word"


def test_top_k_bounds_the_results_and_five_is_the_default():
    assert [
        len(ask(search, "kb_search", query=MANY, top_k=k)["data"]["results"]) for k in (1, 3, 10)
    ] == [1, 3, 10]
    assert ask(search, "kb_search", query=MANY)["data"]["count"] == 5


def test_the_best_are_first_and_nothing_is_made_up():
    results = ask(search, "kb_search", query="glasses radio battery", top_k=10)["data"]["results"]
    assert [r["score"] for r in results] == sorted((r["score"] for r in results), reverse=True)
    assert {(r["title"], r["text"]) for r in results} <= {(p.title, p.text) for p in search.LIBRARY}
    nothing = ask(search, "kb_search", query="zzz qqq")
    assert (nothing["data"]["count"], nothing["render"]["display"]["text"]) == (
        0,
        "Nothing in the library is about that.",
    )
