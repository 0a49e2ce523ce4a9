"""The map tools, with services on loopback that replay answers of Nominatim, OSRM, Valhalla."""

import threading

import pytest

from edge.config import tool_options
from edge.core.pages import MAX_SEPARATE
from edge.core.phrases import match
from edge.core.results import rendering_of
from edge.tools.workers import maps as worker
from edge.tools.workers.route_steps import osrm_step, valhalla_step
from tests.unit.tools import recorded_services as recorded
from tests.unit.tools.compiled import shipped
from tests.unit.tools.recorded_services import STEPS, TPV, Service, gpsd, step, unused_address
from tests.unit.tools.test_local import call
from tests.unit.tools.test_weather import Desk, examples, within
from tools_cache.api.durations import ago
from tools_cache.api.tool import ErrorCode, Source, ToolFailure
from tools_cache.builder import compiler
from tools_cache.everyday import geography, maps as subject
from tools_cache.registry.manifest import load

pytestmark = pytest.mark.enable_socket
HOME = {"latitude": 60.3972, "longitude": 5.3166}
HOME_TO_STATION = "/route/v1/{}/5.3166,60.3972;5.3333,60.3903"
ORDER = ("find", "route", "next_step")
STATION = {"to": "Bergen stasjon"}


@pytest.fixture
def service():
    made = Service()
    made.answers = {"/search": recorded.places, "/route": recorded.valhalla()}
    for by in ("foot", "bike", "car"):
        made.answers[HOME_TO_STATION.format(by)] = recorded.osrm()
    yield made
    made.close()


@pytest.fixture
async def make(tmp_path, service):
    made = []

    def of(**settings):
        given = {"search_url": service.url, "route_url": service.url, **HOME, **settings}
        made.append(Desk(tmp_path, "maps", {k: v for k, v in given.items() if v is not None}))
        return made[-1]

    yield of
    for desk in made:
        await desk.close()


def request(service, **more):
    return {
        "ask": "route",
        "search_url": service.url,
        "route_url": service.url,
        "route_form": "osrm",
        "language": "en",
        "gpsd": "",
        **HOME,
        "from": "",
        "by": "foot",
        **STATION,
        **more,
    }


@pytest.mark.requirement("I15-maps")
async def test_each_example_of_their_documents_is_true(make):
    desk = make()
    for tool in ORDER:
        for args, result in examples(f"maps_{tool}"):
            data = await desk.ask(tool, **args)
            assert within(result, data), data


# ------------------------------------------------------------------ places


async def test_a_place_is_found_with_its_distance_and_direction(make, service):
    found = await make(language="de").ask("find", place="Bergen stasjon?")
    first = found["places"][0]
    assert (first["name"], first["address"]) == ("Bergen stasjon", "Strømgaten 4, Bergen, Norge")
    assert (first["distance_m"], first["bearing"], first["direction"]) == (1196, 130, "south-east")
    ((path, asked),) = service.asked
    assert (path, asked["q"], asked["format"], asked["limit"], asked["accept-language"]) == (
        "/search",
        "Bergen stasjon",
        "jsonv2",
        "5",
        "de",
    )
    assert asked["viewbox"] == "4.8166,60.8972,5.8166,59.8972"
    assert service.agents == ["glassd"]


async def test_without_a_position_places_have_no_distance(make, service):
    desk = make(latitude=None, longitude=None, gpsd=unused_address())
    found = await desk.ask("find", place="Große Straße 12")
    assert found["text"] == "12\nGroße Straße, Köln, Deutschland"
    assert "distance_m" not in found["places"][0]
    assert "viewbox" not in service.asked[0][1]


def test_at_most_five_places_are_given_and_unusable_ones_left_out(service):
    lacking = [{"name": "x"}, {"lat": "north", "lon": "5"}, {"lat": "91", "lon": "5"}, None]
    service.answers["/search"] = [*lacking, recorded.STATION, recorded.OTHER]
    found = worker.answer(request(service, ask="find", place="x"))
    assert [place["name"] for place in found["places"]] == ["Bergen stasjon"]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"error": "x"}, "without a list of places"),
        ([{"lat": None}], "without the position of any place"),
        (b"<html></html>", "something else than JSON"),
        (b" " * 1_100_000, "too long"),
    ],
)
def test_an_unusable_list_of_places_is_reported(service, raw, problem):
    service.answers["/search"] = raw
    with pytest.raises(ToolFailure, match=problem) as raised:
        worker.answer(request(service, ask="find", place="x"))
    assert raised.value.error.code is ErrorCode.HTTP_ERROR


# ------------------------------------------------------------------ the way


@pytest.mark.parametrize("by", ["foot", "bike", "car"])
async def test_osrm_is_asked_in_its_own_form(make, service, by):
    found = await make().ask("route", to="60.3903, 5.3333", by=by)
    assert service.asked == [
        (HOME_TO_STATION.format(by), {"overview": "false", "steps": "true"}),
    ]
    assert found["text"].splitlines()[0] == f"60.3903, 5.3333: 1.6 km, 20 min {subject.BY[by]}"


async def test_each_way_of_travelling_may_have_an_address_of_its_own(make, service):
    service.answers["/routed-bike" + HOME_TO_STATION.format("bike")] = recorded.osrm()
    desk = make(route_url=service.url + "/routed-{by}/")
    assert (await desk.ask("route", **STATION, by="bike"))["distance_m"] == 1620


async def test_valhalla_is_asked_in_its_own_form(make, service):
    found = await make(route_form="valhalla").ask("route", **STATION, by="bike")
    assert service.bodies == [
        {
            "locations": [{"lat": 60.3972, "lon": 5.3166}, {"lat": 60.3903, "lon": 5.3333}],
            "costing": "bicycle",
            "units": "kilometers",
            "language": "en-US",
        }
    ]
    assert found["text"].splitlines() == [
        "Bergen stasjon: 1.6 km, 20 min by bike",
        "1. Walk south on Bryggen, 420 m",
        "2. Turn left onto Kaigaten, 1.2 km",
        "3. You have arrived: Bergen stasjon, on the right",
    ]


async def test_the_way_begins_where_gpsd_says(make, service):
    path = "/route/v1/foot/5.3245,60.397;5.3333,60.3903"
    service.answers[path] = recorded.osrm()
    with gpsd(TPV) as address:
        await make(gpsd=address).ask("route", **STATION)
    assert service.asked[-1][0] == path


async def test_the_way_may_begin_elsewhere(make, service):
    desk = make(latitude=None, longitude=None)
    service.answers["/route/v1/foot/6.96,50.93;5.3333,60.3903"] = recorded.osrm()
    found = await desk.ask("route", **STATION, **{"from": "Große Straße 12"})
    assert found["from"]["address"] == "Große Straße, Köln, Deutschland"
    error = await desk.fails("route", **STATION)
    assert error.code is ErrorCode.TOOL_UNAVAILABLE
    assert "set gpsd, or latitude and longitude, in [tool.maps]" in error.suggestion


async def test_units_of_a_way_are_those_of_the_settings(make):
    found = await make(units="imperial").ask("route", **STATION)
    assert found["text"].splitlines()[:3] == [
        "Bergen stasjon: 1.0 mi, 20 min on foot",
        "1. Head south on Bryggen, 0.3 mi",
        "2. Turn left onto Kaigaten, 0.7 mi",
    ]


@pytest.mark.parametrize("field", ["to", "from"])
async def test_a_place_of_the_way_that_nobody_knows_is_named(make, field):
    error = await make().fails("route", **{**STATION, field: "Nirgendwo"})
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert f"/{field} no place is called 'Nirgendwo'" in error.message


@pytest.mark.parametrize(
    ("form", "raw", "sentence"),
    [
        ("osrm", {"code": "NoRoute", "message": "Impossible route"}, "There is no way on foot to"),
        ("osrm", {"code": "NoSegment", "message": "x"}, "No street on foot is near"),
        ("valhalla", {"error_code": 442, "error": "No path"}, "There is no way on foot to"),
        ("valhalla", {"error_code": 171, "error": "x"}, "No street on foot is near"),
        ("osrm", {"code": ["NoRoute"]}, "answered with status 400"),
        ("valhalla", b"<html>", "answered with status 400"),
    ],
)
def test_that_there_is_no_way_is_said_in_plain_words(service, form, raw, sentence):
    def fails(_query):
        service.status = 400
        return raw

    service.answers |= {HOME_TO_STATION.format("foot"): fails, "/route": fails}
    with pytest.raises(ToolFailure, match=sentence) as raised:
        worker.answer(request(service, route_form=form))
    assert not raised.value.error.partial_side_effects


def changed(**route):
    raw = recorded.osrm()
    raw["routes"][0] |= route
    return raw


@pytest.mark.parametrize(
    ("form", "raw", "problem"),
    [
        ("osrm", [], 'without the code "Ok"'),
        ("osrm", {"code": "Ok", "routes": []}, "without a route with legs"),
        ("osrm", {"code": "Ok", "routes": ["x"]}, "without a route with legs"),
        ("osrm", changed(legs="x"), "without a route with legs"),
        ("osrm", changed(legs=[{"steps": 3}, 7]), "without distance, duration and steps"),
        ("osrm", changed(distance="far"), "without distance, duration and steps"),
        ("osrm", changed(duration=-1), "without distance, duration and steps"),
        ("osrm", b"<html></html>", "something else than JSON"),
        ("valhalla", {"trip": {"legs": []}}, "without a trip with legs and a summary"),
        ("valhalla", {"trip": {"legs": [], "summary": {}}}, "without distance, duration and steps"),
    ],
)
def test_an_unusable_way_is_reported(service, form, raw, problem):
    service.answers |= {HOME_TO_STATION.format("foot"): raw, "/route": raw}
    with pytest.raises(ToolFailure, match=problem) as raised:
        worker.answer(request(service, route_form=form))
    assert raised.value.error.code is ErrorCode.HTTP_ERROR


@pytest.mark.parametrize(
    ("status", "code"), [(429, ErrorCode.RATE_LIMIT), (500, ErrorCode.NETWORK_ERROR)]
)
@pytest.mark.parametrize("form", ["osrm", "valhalla"])
def test_a_status_of_failure_is_reported(service, form, status, code):
    service.status = status
    with pytest.raises(ToolFailure) as raised:
        worker.answer(request(service, route_form=form, to="60.3903, 5.3333"))
    assert raised.value.error.code is code


def test_a_service_that_does_not_answer_is_left_in_time(service, monkeypatch):
    monkeypatch.setattr(worker, "TIMEOUT_S", 0.2)
    service.slow = threading.Event()
    with pytest.raises(ToolFailure, match="did not answer") as raised:
        worker.answer(request(service, route_form="valhalla", to="60.3903, 5.3333"))
    error = raised.value.error
    assert (error.code, error.partial_side_effects) == (ErrorCode.NETWORK_ERROR, False)


# ------------------------------------------------------------------ sentences


@pytest.mark.parametrize(
    ("kind", "modifier", "more", "sentence"),
    [
        ("depart", "", {}, "Head south on Main Street"),
        ("depart", "", {"maneuver": {"bearing_after": None}}, "Start on Main Street"),
        ("turn", "left", {}, "Turn left onto Main Street"),
        ("turn", "sharp right", {}, "Turn sharp right onto Main Street"),
        ("turn", "slight left", {}, "Turn slightly left onto Main Street"),
        ("turn", "straight", {}, "Go straight onto Main Street"),
        ("turn", "uturn", {}, "Make a U-turn onto Main Street"),
        ("turn", "left", {"name": ""}, "Turn left"),
        ("turn", "left", {"name": "", "ref": "B 51"}, "Turn left onto B 51"),
        ("new name", "straight", {}, "Continue onto Main Street"),
        ("continue", "straight", {}, "Continue straight on Main Street"),
        ("continue", "left", {}, "Turn left to stay on Main Street"),
        ("continue", "uturn", {}, "Make a U-turn on Main Street"),
        ("merge", "slight left", {}, "Merge left onto Main Street"),
        ("on ramp", "slight right", {}, "Take the ramp on the right onto Main Street"),
        ("ramp", "", {"name": "", "destinations": "Köln"}, "Take the ramp towards Köln"),
        ("off ramp", "right", {"exits": "12"}, "Take exit 12 on the right onto Main Street"),
        ("off ramp", "right", {"name": ""}, "Take the exit on the right"),
        ("fork", "slight right", {}, "Keep right at the fork onto Main Street"),
        ("fork", "straight", {}, "Go straight at the fork onto Main Street"),
        ("end of road", "right", {}, "Turn right at the end of the road onto Main Street"),
        ("use lane", "slight left", {}, "Keep left on Main Street"),
        ("roundabout", "right", {"maneuver": {"exit": 2}}, "At the roundabout take the 2nd exit"),
        ("rotary", "right", {"maneuver": {"exit": 4}}, "At the roundabout take the 4th exit"),
        ("rotary", "right", {"maneuver": {"exit": "x"}}, "Enter the roundabout onto Main Street"),
        ("roundabout turn", "left", {}, "At the roundabout turn left onto Main Street"),
        ("exit roundabout", "right", {}, "Leave the roundabout onto Main Street"),
        ("exit rotary", "right", {}, "Leave the roundabout onto Main Street"),
        ("notification", "straight", {}, "Continue on Main Street"),
        ("arrive", "left", {}, "You have arrived: Home, on the left"),
        ("arrive", "straight", {}, "You have arrived: Home, straight ahead"),
        ("arrive", "", {}, "You have arrived: Home"),
        ("something new", "left", {}, "Turn left onto Main Street"),
        ("turn", "left", {"mode": "ferry", "name": "Askøy"}, "Take the ferry Askøy"),
        ("turn", "left", {"mode": "pushing bike"}, "Turn left onto Main Street, push the bike"),
    ],
)
def test_a_step_is_a_plain_sentence(kind, modifier, more, sentence):
    raw = step(kind, modifier, **{"name": "Main Street", **more})
    text = osrm_step(raw, "Home")["text"]
    assert text.removesuffix(" onto Main Street") == sentence.removesuffix(" onto Main Street")
    assert text.endswith("Main Street") or "roundabout take" not in text


@pytest.mark.parametrize(
    ("raw", "text", "metres"),
    [
        ({}, "Continue", 0),
        ({"maneuver": [], "name": 7, "distance": "far"}, "Continue", 0),
        (
            {"maneuver": {"type": "turn", "modifier": {}}, "name": "A\nB\x00"},
            "Continue onto A B",
            0,
        ),
        ({"name": "x" * 5000, "distance": float("nan")}, "Continue onto " + "x" * 100, 0),
    ],
)
def test_a_step_that_lacks_something_is_a_sentence_too(raw, text, metres):
    assert osrm_step(raw, "Home") == {"text": text, "distance_m": metres}


def test_a_step_of_valhalla_without_an_instruction_names_its_street():
    assert valhalla_step({"type": [4], "street_names": ["Kaigaten"], "length": 0.12}, "Home") == {
        "text": "Continue on Kaigaten",
        "distance_m": 120,
    }
    assert valhalla_step({"type": 6}, "Home")["text"] == "You have arrived: Home, on the left"


# ------------------------------------------------------------------ step by step


@pytest.mark.requirement("I15-maps")
async def test_each_step_begins_a_page_and_the_first_one_is_spoken(make):
    rendering = rendering_of(await make().good("maps:route", STATION))
    assert rendering.pages == (
        "Bergen stasjon: 1.6 km, 20 min on foot\n1. Head south on Bryggen, 420 m",
        "2. Turn left onto Kaigaten, 1.2 km",
        "3. You have arrived: Bergen stasjon, on the right",
    )
    assert (
        rendering.speech == "Bergen stasjon: 1.6 km, 20 min on foot\nHead south on Bryggen, 420 m"
    )


@pytest.mark.requirement("I15-maps")
async def test_steps_are_gone_through_and_back_without_the_network(make, service):
    desk = make()
    await desk.ask("route", **STATION)
    service.close()
    steps = [(await desk.ask("next_step"))["step"] for _ in range(3)]
    assert steps == [2, 3, 3]
    assert [(await desk.ask("next_step", back=True))["step"] for _ in range(3)] == [2, 1, 1]


async def test_a_step_has_a_page_of_its_own(make):
    desk = make()
    await desk.ask("route", **STATION)
    response = await desk.good("maps:next_step")
    rendering = rendering_of(response)
    assert rendering.text == "Turn left onto Kaigaten, 1.2 km\nStep 2 of 3"
    assert (rendering.speech, rendering.scene) == ("Turn left onto Kaigaten, 1.2 km", "maps-step")


async def test_a_route_that_would_be_done_by_now_says_its_age(make):
    desk = make()
    await desk.ask("route", **STATION)
    desk.wall += 1100
    assert "The route" not in (await desk.ask("next_step"))["text"]
    desk.wall += 100
    found = await desk.ask("next_step")
    assert found["text"].splitlines()[-1] == "The route is from 20 minutes ago"


async def test_without_a_route_there_is_no_step(make):
    error = await make().fails("next_step")
    assert error.for_wearer == "There is no route. Ask for the way first."


@pytest.mark.requirement("I15-maps")
async def test_the_last_route_is_given_without_the_network_with_its_age(make, service):
    desk = make()
    await desk.ask("route", **STATION)
    await desk.ask("next_step")
    service.close()
    desk.wall += 20 * 60
    found = await desk.ask("route", to="bergen STASJON")
    assert found["text"].splitlines()[:2] == [
        "Bergen stasjon: 1.6 km, 20 min on foot",
        "The route is from 20 minutes ago",
    ]
    assert (found["age_s"], found["step"]) == (1200, 2)
    old = rendering_of(await desk.good("maps:route", STATION))
    assert "The route is from 20 minutes ago" in old.pages[0]
    assert "The route is from 20 minutes ago" in old.speech
    assert not any("ago" in page for page in old.pages[1:])
    assert (await desk.fails("route", **STATION, by="car")).code is ErrorCode.NETWORK_ERROR
    assert (await desk.fails("route", to="Oslo")).code is ErrorCode.NETWORK_ERROR


async def test_a_new_route_takes_the_place_of_the_former(make, service):
    desk = make()
    await desk.ask("route", **STATION)
    await desk.ask("next_step")
    await desk.ask("route", **STATION, by="car")
    rows = await desk.stores.of(call("x").user_id, "maps").db.select("routes")
    assert [row["encrypted__route"]["wanted"]["by"] for row in rows] == ["car"]
    assert (await desk.ask("next_step"))["step"] == 2


async def test_a_long_way_shows_its_first_steps(make, service):
    many = [STEPS[0], *[step("turn", "left", f"Street {n}") for n in range(600)], STEPS[2]]
    service.answers[HOME_TO_STATION.format("foot")] = recorded.osrm(many)
    desk = make()
    found = await desk.ask("route", **STATION)
    assert len(found["steps"]) == worker.MAX_STEPS
    assert found["text"].splitlines()[-1] == "… 460 more steps"
    pages = rendering_of(await desk.good("maps:route", STATION)).pages
    assert (len(pages), pages[-1]) == (subject.MOST_SHOWN + 1, "… 460 more steps")
    assert len(pages) <= MAX_SEPARATE


@pytest.mark.requirement("I15-maps-private")
async def test_the_route_is_encrypted_and_no_other_user_has_it(make):
    desk = make()
    await desk.ask("route", **STATION)
    theirs = await desk.go(call("maps:next_step", {}, user_id="other"))
    assert theirs.error.code is ErrorCode.INVALID_ARGUMENTS
    await desk.stores.close()
    stored = b"".join(file.read_bytes() for file in desk.users.rglob("*") if file.is_file())
    assert b"routes" in stored
    for word in (b"Kaigaten", b"stasjon", b"5.3333"):
        assert word not in stored


# ------------------------------------------------------------------ distances, settings, speech


@pytest.mark.parametrize(
    ("north", "east", "direction", "degrees"),
    [(1, 0, "north", 0), (0, 1, "east", 90), (-1, 0, "south", 180), (0, -1, "west", 270)],
)
def test_directions_are_right_on_both_sides_of_the_date_line(north, east, direction, degrees):
    start = {"latitude": 0.0, "longitude": 180.0}
    end = {"latitude": float(north), "longitude": -180.0 + east}
    assert geography.bearing(start, end) == pytest.approx(degrees)
    assert geography.compass(geography.bearing(start, end)) == direction
    assert geography.distance_m(start, end) == pytest.approx(111_195, abs=10)


@pytest.mark.parametrize(
    ("metres", "metric", "imperial"),
    [
        (7, "7 m", "20 ft"),
        (118, "120 m", "390 ft"),
        (996, "1.0 km", "0.6 mi"),
        (2090, "2.1 km", "1.3 mi"),
        (12_300, "12 km", "7.6 mi"),
    ],
)
def test_distances_are_written_as_people_say_them(metres, metric, imperial):
    assert geography.length(metres, "metric") == metric
    assert geography.length(metres, "imperial") == imperial


def test_durations_and_ages_are_written_as_people_say_them():
    assert [geography.minutes(s) for s in (5, 1620, 3900)] == ["1 min", "27 min", "1 h 5 min"]
    assert [ago(s) for s in (5, 60, 7200, 90_000)] == [
        "just now",
        "1 minute ago",
        "2 hours ago",
        "1 day ago",
    ]
    assert [ago(s, short=True) for s in (120, 7200, 200_000)] == [
        "2 min ago",
        "2 h ago",
        "2 days ago",
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"search_url": "x"}, "is no address of a service"),
        ({"route_url": "https://"}, "is no address of a service"),
        ({"route_form": "google"}, "route_form"),
        ({"language": "x&y"}, "language"),
        ({"longitude": 5.0}, "set both latitude and longitude"),
    ],
)
def test_a_wrong_setting_is_named_with_its_fix(settings, problem):
    given = {"search_url": "https://a.example", "route_url": "https://b.example/{by}", **settings}
    found, _ = tool_options.read({"maps": given}, compiler.TOOLS)
    assert problem in found.off["maps:route"]


def test_without_addresses_the_tools_are_not_configured():
    found, _ = tool_options.read({}, compiler.TOOLS)
    assert found.off["maps:find"] == ("not configured: set search_url and route_url in [tool.maps]")


@pytest.mark.parametrize(
    ("language", "sentence", "to", "by"),
    [
        ("", "How do I get to Bergen stasjon?", "Bergen stasjon", "foot"),
        ("", "How far is it to the harbour by bike?", "the harbour", "bike"),
        ("de", "Wie komme ich zum Bahnhof zu Fuß?", "Bahnhof", "foot"),
        ("de", "Wie weit ist es nach Köln mit dem Auto?", "Köln", "car"),
        ("es", "¿Cómo llego a Sevilla en bicicleta?", "Sevilla", "bike"),
        ("fr", "Comment aller à Lyon en voiture ?", "Lyon", "car"),
        ("it", "Come arrivo alla stazione a piedi?", "stazione", "foot"),
    ],
)
def test_a_sentence_asks_for_the_way(language, sentence, to, by):
    found = match(sentence, tools(), language)
    assert found is not None
    assert found.tool.name == "maps:route"
    assert subject.spoken_target(found.args["to"], found.args.get("by", "")) == (to, by)


@pytest.mark.parametrize(
    ("language", "sentence", "args"),
    [
        ("", "next step", {}),
        ("", "go one step back", {"back": True}),
        ("de", "nächster Schritt", {}),
        ("es", "siguiente paso", {}),
        ("fr", "étape suivante", {}),
        ("it", "prossimo passo", {}),
    ],
)
def test_a_sentence_goes_a_step_on_or_back(language, sentence, args):
    found = match(sentence, tools(), language)
    assert found is not None
    assert (found.tool.name, found.args) == ("maps:next_step", args)


def tools():
    registry = load(shipped().encode(), source=Source.LOCAL, trusted=True)
    return [tool for app in registry.apps for tool in app.tools]
