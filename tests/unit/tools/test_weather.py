"""The weather tools, with services on loopback that replay Open-Meteo's answers."""

import json
import re
import threading
from itertools import pairwise

import pytest

from edge.config import tool_options
from edge.core.phrases import match
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.worker_calls import WorkerCalls
from edge.tools.workers import weather as worker
from tests.unit.tools import recorded_services as recorded
from tests.unit.tools.compiled import shipped
from tests.unit.tools.desk import PackageDesk
from tests.unit.tools.recorded_services import TPV, Service, gpsd, unused_address
from tests.unit.tools.test_local import call
from tools_cache.api.tool import ErrorCode, Source
from tools_cache.builder import compiler
from tools_cache.everyday import weather as subject
from tools_cache.registry.manifest import load

HOME = {"latitude": 60.39, "longitude": 5.32}
ORDER = ("now", "hours", "days")
pytestmark = pytest.mark.enable_socket


class Desk(PackageDesk):
    """The shipped tools with settings, real child processes and a user's own storage."""

    def __init__(self, path, package, settings):
        self.users = path / "users"
        self.package = package
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        calls = WorkerCalls()
        options, problems = tool_options.read({package: settings}, compiler.TOOLS)
        assert problems == []
        super().__init__(
            path,
            shipped(),
            compiler.TOOLS,
            private=self.stores.of,
            workers=lambda: calls,
            configs=options.values,
        )

    async def close(self):
        await self.stores.close()
        await self.packages.close()


def within(told, whole):
    if isinstance(told, dict):
        return all(key in whole and within(value, whole[key]) for key, value in told.items())
    if isinstance(told, list):
        return len(told) == len(whole) and all(map(within, told, whole))
    return told == whole


def examples(tool):
    doc = (compiler.TOOLS / tool / "doc.md").read_text(encoding="utf-8")
    found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
    assert found
    return [(json.loads(args), json.loads(result)) for args, result in found]


@pytest.fixture
def service():
    made = Service()
    made.answers = {"/v1/forecast": recorded.forecast(), "/v1/search": recorded.geocoding}
    yield made
    made.close()


@pytest.fixture
async def make(tmp_path, service):
    made = []

    def of(**settings):
        given = {"url": service.url, "geocoding_url": service.url, **settings}
        made.append(Desk(tmp_path, "weather", given))
        return made[-1]

    yield of
    for desk in made:
        await desk.close()


def request(service, **more):
    empty = {"geocoding_url": service.url, "home": "", "gpsd": "", "place": "Bergen"}
    return {"url": service.url, "latitude": None, "longitude": None, **empty, **more}


@pytest.mark.requirement("I15-weather")
async def test_each_example_of_their_documents_is_true(make):
    desk = make()
    for tool in ORDER:
        for args, result in examples(f"weather_{tool}"):
            data = await desk.ask(tool, **args)
            if tool == "hours":  # the document shows the first of twelve
                data["text"] = "\n".join(data["text"].splitlines()[:5])
            assert within(result, data), data


async def test_the_service_is_asked_in_its_own_form(service):
    worker.answer(request(service))
    (search, named), (path, asked) = service.asked
    assert (search, named) == (
        "/v1/search",
        {"name": "Bergen", "count": "5", "language": "en"},
    )
    assert (path, asked["latitude"], asked["timezone"]) == ("/v1/forecast", "60.39299", "auto")
    assert {"current", "hourly", "daily", "longitude"} < asked.keys()
    assert service.agents == ["glassd", "glassd"]


async def test_twelve_coming_hours_are_given_in_the_time_of_the_place(make):
    found = await make().ask("hours", place="Bergen")
    times = [hour["time"] for hour in found["hours"]]
    assert (len(times), times[0], times[-1]) == (12, "2026-11-21T12:00", "2026-11-21T23:00")


@pytest.mark.parametrize(
    ("code", "percent", "celsius", "text"),
    [
        (63, 80, 8, "rain 80 %"),
        (3, 30, 8, "overcast, rain 30 %"),
        (3, 30, -2, "overcast, snow 30 %"),
        (71, 65, -2, "light snow 65 %"),
        (3, 9, 8, "overcast"),
        (63, None, 8, "rain"),
        (None, 40, 8, "rain 40 %"),
        (None, None, 8, ""),
    ],
)
def test_a_chance_says_of_what_it_is(code, percent, celsius, text):
    assert subject.sky(code, percent, celsius) == text


async def test_as_many_days_as_asked_for_are_given(make):
    desk = make()
    found = await desk.ask("days", place="Bergen", days=7)
    assert found["text"].splitlines()[2:4] == [
        "Monday -3° to 1°, light snow 65 %",
        "Tuesday -4° to 2°, clear",
    ]
    assert len(found["days"]) == 7
    assert len((await desk.ask("days", place="Bergen"))["days"]) == 3


async def test_units_are_those_of_the_settings(make):
    found = await make(units="imperial").ask("now", place="Bergen")
    assert found["text"].splitlines()[:2] == [
        "Bergen 45°F, rain",
        "Feels like 39°F, wind 14 mph from the south-west",
    ]
    assert (found["temperature"], found["units"]) == (45.0, {"temperature": "°F", "wind": "mph"})


# ------------------------------------------------------------------ where


async def test_without_a_place_it_is_where_gpsd_says(make, service):
    with gpsd({**TPV, "mode": 1}, TPV) as address:
        found = await make(gpsd=address, **HOME).ask("now")
    assert found["text"].startswith("Here 7°, rain\n")
    assert service.asked == [("/v1/forecast", service.asked[0][1])]
    assert service.asked[0][1]["latitude"] == "60.397"


async def test_without_gpsd_it_is_the_home_of_the_settings(make, service):
    found = await make(gpsd=unused_address(), home="Øvre Årdal", **HOME).ask("now")
    assert found["text"].startswith("Øvre Årdal 7°, rain\n")
    assert service.asked[0][1]["longitude"] == "5.32"


async def test_a_home_by_name_is_looked_for(make, service):
    found = await make(home="Bergen").ask("now", place="here")
    assert found["place"]["country"] == "Norway"


async def test_a_place_may_be_coordinates(make, service):
    found = await make(geocoding_url="").ask("now", place="60.39, 5.32")
    assert found["place"]["latitude"] == 60.39
    assert [path for path, _ in service.asked] == ["/v1/forecast"]


@pytest.mark.parametrize(
    ("settings", "place", "set_this"),
    [
        ({}, {}, "set gpsd, or latitude and longitude, in [tool.weather]"),
        ({"geocoding_url": ""}, {"place": "Bergen"}, "Set geocoding_url in [tool.weather]"),
        ({"geocoding_url": "", "home": "Bergen"}, {}, "Set geocoding_url, or latitude"),
    ],
)
async def test_what_to_set_is_said(make, service, settings, place, set_this):
    error = await make(**settings).fails("now", **place)
    assert error.code is ErrorCode.TOOL_UNAVAILABLE
    assert set_this in error.suggestion
    assert service.asked == []


async def test_a_place_that_nobody_knows_is_named(make):
    error = await make().fails("now", place="Nirgendwo")
    assert (error.code, error.for_wearer) == (
        ErrorCode.INVALID_ARGUMENTS,
        "No place is called “Nirgendwo”.",
    )


# ------------------------------------------------------------------ without the network


@pytest.mark.requirement("I15-weather")
async def test_the_last_known_weather_is_given_with_its_age(make, service):
    desk = make()
    await desk.ask("now", place="Bergen")
    service.close()
    desk.wall += 3 * 3600 + 60
    found = await desk.ask("now", place="bergen")
    assert found["text"].splitlines()[0] == "Bergen 7°, rain (3 h ago)"
    assert found["age_s"] == 3 * 3600 + 60
    assert "127.0.0.1 cannot be reached" in found["warning"]
    error = await desk.fails("now", place="Oslo")
    assert error.code is ErrorCode.NETWORK_ERROR
    desk.wall += 7 * 86_400
    assert (await desk.fails("now", place="Bergen")).code is ErrorCode.NETWORK_ERROR


async def test_hours_and_days_that_are_over_are_left_out(make, service):
    desk = make()
    await desk.ask("now", place="Bergen")
    service.close()
    desk.wall += 14 * 3600
    found = await desk.ask("hours", place="Bergen")
    assert found["hours"][0]["time"] == "2026-11-22T02:00"
    assert found["text"].startswith("Bergen 6°, dry (14 h ago)\n02:00 6°, partly cloudy\n")
    days = await desk.ask("days", place="Bergen", days=7)
    assert days["days"][0]["date"] == "2026-11-22"
    assert days["text"].startswith("Bergen today 3° to 6°, partly cloudy (14 h ago)\n")
    desk.wall += 2 * 86_400
    error = await desk.fails("hours", place="Bergen")
    assert "Nothing is known of the coming hours. 127.0.0.1 cannot be reached" in error.message


async def test_where_the_device_is_the_nearest_known_place_counts(make, service):
    desk = make(**HOME)
    await desk.ask("now", place="Bergen")
    service.close()
    assert (await desk.ask("now"))["text"].startswith("Bergen 7°, rain (just now)\n")
    far = make(latitude=59.9, longitude=10.7)
    assert (await far.fails("now")).code is ErrorCode.NETWORK_ERROR


async def test_of_a_known_place_the_newest_is_kept_and_fifty_places_at_most(
    make, service, monkeypatch
):
    desk = make()
    service.answers["/v1/search"] = lambda query: {
        "results": [{**recorded.BERGEN, "name": query["name"]}]
    }
    monkeypatch.setattr(subject, "MAX_PLACES", 2)
    for name in ("A", "B", "A", "C"):
        await desk.ask("now", place=name)
        desk.wall += 60
    rows = await desk.stores.of(call("x").user_id, "weather").db.select("forecasts")
    assert sorted(row["encrypted__known"]["name"] for row in rows) == ["a", "c"]
    assert [later["asked"] - row["asked"] for row, later in pairwise(rows)] == [60.0]


@pytest.mark.requirement("I15-weather-private")
async def test_no_word_of_a_place_is_on_disk_in_plain_text(make):
    desk = make()
    await desk.ask("now", place="Köln")
    await desk.stores.close()
    stored = b"".join(file.read_bytes() for file in desk.users.rglob("*") if file.is_file())
    assert b"forecasts" in stored
    for word in ("Köln", "köln", "60.39", "Germany"):
        assert word.encode() not in stored


async def test_another_user_gets_no_stored_answer(make, service):
    desk = make()
    await desk.ask("now", place="Bergen")
    service.close()
    theirs = await desk.go(call("weather:now", {"place": "Bergen"}, user_id="other"))
    assert theirs.error.code is ErrorCode.NETWORK_ERROR


async def test_weather_that_cannot_be_kept_is_given_all_the_same(make, monkeypatch, caplog):
    async def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(subject.KnownForecasts, "keep", full)
    assert (await make().ask("now", place="Bergen"))["temperature"] == 7.2
    assert "not kept for later: disk full" in caplog.text


# ------------------------------------------------------------------ bad answers


def without(*path):
    raw = recorded.forecast()
    inner = raw
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return raw


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ([], "without an object"),
        (without("current"), "without current"),
        (without("hourly"), "without hourly"),
        (without("daily"), "without daily"),
        (without("utc_offset_seconds"), "without utc_offset_seconds"),
        (without("current", "temperature_2m"), "without current.temperature_2m"),
        ({**recorded.forecast(), "current": {"temperature_2m": "7", "weather_code": 1}}, "current"),
        (b"<html>Please sign in</html>", "something else than JSON"),
        (b'{"current": ' + b"[" * 100_000, "something else than JSON"),
        (b" " * 1_100_000, "too long"),
    ],
)
def test_an_unusable_answer_is_reported_in_plain_words(service, raw, problem):
    service.answers["/v1/forecast"] = raw
    failed = worker.answer(request(service))["failed"]
    assert failed["code"] == "HTTP_ERROR"
    assert problem in failed["message"]


def test_values_of_a_wrong_type_are_left_out_and_the_rest_is_given(service):
    raw = recorded.forecast()
    raw["current"]["wind_speed_10m"] = "strong"
    raw["hourly"]["temperature_2m"][12] = None
    raw["hourly"]["time"][13] = "noon"
    raw["hourly"]["weather_code"] = 3
    raw["daily"]["temperature_2m_max"] = [8.0]
    service.answers["/v1/forecast"] = raw
    found = worker.answer(request(service))["forecast"]
    assert found["current"]["wind"] is None
    assert len(found["hours"]) == 46
    assert found["hours"][0]["code"] is None
    assert [day["high"] for day in found["days"]] == [8.0]


@pytest.mark.parametrize(
    ("status", "code", "retry_ms"),
    [(429, "RATE_LIMIT", 30_000), (500, "NETWORK_ERROR", None), (403, "AUTH", None)],
)
def test_a_status_of_failure_is_told_with_the_place(service, status, code, retry_ms):
    service.answers["/v1/search"], service.status = recorded.geocoding, status
    service.headers = {"Retry-After": "30"}
    found = worker.answer(request(service, place="60.39,5.32"))
    assert found["place"]["latitude"] == 60.39
    assert (found["failed"]["code"], found["failed"].get("retry_after_ms")) == (code, retry_ms)


async def test_a_service_that_asks_for_patience_gets_it(make, service):
    desk = make()
    await desk.ask("now", place="Bergen")
    service.status, service.headers = 429, {"Retry-After": "30"}
    assert (await desk.ask("now", place="Bergen"))["warning"] == "127.0.0.1 is asked too often"
    error = await desk.fails("now", place="Oslo")
    assert (error.code, error.retry_after_ms) == (ErrorCode.RATE_LIMIT, 30_000)


def test_a_redirect_is_not_followed(service):
    other = Service()
    try:
        service.status = 302
        service.headers = {"Location": f"{other.url}/v1/forecast"}
        failed = worker.answer(request(service, place="60.39,5.32"))["failed"]
        assert (failed["code"], other.asked) == ("HTTP_ERROR", [])
    finally:
        other.close()


def test_a_service_that_does_not_answer_is_left_in_time(service, monkeypatch):
    monkeypatch.setattr(worker, "TIMEOUT_S", 0.2)
    service.slow = threading.Event()
    failed = worker.answer(request(service, place="60.39,5.32"))["failed"]
    assert failed["code"] == "NETWORK_ERROR"
    assert failed["message"].startswith("127.0.0.1 did not answer")


# ------------------------------------------------------------------ settings and speech


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"url": "ftp://x"}, "is no address of a service"),
        ({"url": "https://x?key=1"}, "is no address of a service"),
        ({"gpsd": "localhost"}, "write HOST:PORT"),
        ({"gpsd": "localhost:99999"}, "write HOST:PORT"),
        ({"latitude": 60.0}, "set both latitude and longitude"),
        ({"latitude": 91.0, "longitude": 5.0}, "latitude must be from -90 to 90"),
        ({"units": "kelvin"}, "units"),
    ],
)
def test_a_wrong_setting_is_named_with_its_fix(settings, problem):
    given = {"url": "https://example.com/", **settings}
    found, _ = tool_options.read({"weather": given}, compiler.TOOLS)
    assert problem in found.off["weather:now"]


def test_without_an_address_the_tools_are_not_configured():
    found, _ = tool_options.read({}, compiler.TOOLS)
    assert found.off["weather:days"] == "not configured: set url in [tool.weather]"


@pytest.mark.parametrize(
    ("language", "sentence", "tool", "args", "place"),
    [
        ("", "What's the weather in Bergen?", "weather:now", {"place": "Bergen"}, "Bergen"),
        ("", "what is the weather like", "weather:now", {}, ""),
        ("", "What's the weather in Bergen today?", "weather:now", None, "Bergen"),
        ("", "Weather forecast for Köln", "weather:days", {"place": "Köln"}, "Köln"),
        ("", "weather forecast for Bergen for 5 days", "weather:days", None, "Bergen"),
        ("", "Will it rain in New York?", "weather:hours", {"place": "New York"}, "New York"),
        ("de", "Wie ist das Wetter in Köln?", "weather:now", {"place": "Köln"}, "Köln"),
        ("es", "¿Qué tiempo hace en Sevilla?", "weather:now", {"place": "Sevilla"}, "Sevilla"),
        ("fr", "Quel temps fait-il à Lyon ?", "weather:now", None, "Lyon"),
        ("it", "Che tempo fa a Roma?", "weather:now", None, "Roma"),
    ],
)
def test_a_sentence_asks_for_the_weather_of_its_place(language, sentence, tool, args, place):
    registry = load(shipped().encode(), source=Source.LOCAL, trusted=True)
    tools = [tool for app in registry.apps for tool in app.tools]
    found = match(sentence, tools, language)
    assert found is not None
    assert found.tool.name == tool
    assert args is None or found.args == args
    assert subject.place_in(found.args.get("place", "")) == place


def test_every_weather_code_has_words():
    assert subject.words_of(61.0) == "light rain"
    assert subject.words_of(42) == "weather code 42"
    assert subject.words_of(None) == ""
    assert len(set(subject.WORDS.values())) == len(subject.WORDS) == 28
