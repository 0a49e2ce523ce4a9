"""Uses of the tools that talk to others: contacts, weather, maps, kasa, web."""

import asyncio

from tests.scenarios.everyday.three_ways import FIELDS, Scene, Step, Use, finds, first, lacks
from tests.unit.tools.test_contacts_import import vcard

# ------------------------------------------------------------------ contacts


def known(name: str) -> Step:
    return first("contacts:add", name=name, phones=["+47 55 12 34"])


async def has_a_card(scene: Scene) -> None:
    name = scene.fill("Sync of {who}")
    await asyncio.to_thread(scene.services.book.put, name, vcard(name, uid=name))


CONTACTS = (
    Use(
        "contacts:add",
        "Added: {who} Berg",
        say="add a contact called {who} Berg",
        args={"name": "{who} Berg"},
        then=finds("{who} Berg", "contacts:list"),
    ),
    Use(
        "contacts:add_all",
        "Added 1 of 1 contacts",
        unspoken="It needs a list.",
        args={"contacts": [{"name": "{who} Dahl"}]},
        then=finds("{who} Dahl", "contacts:list"),
    ),
    Use(
        "contacts:extract",
        "{who} Eide, +47 55 12 34 56",
        unspoken="It needs a text.",
        args={"text": "Call {who} Eide at +47 55 12 34 56."},
    ),
    Use(
        "contacts:find",
        "+47 55 12 34",
        say="what is the phone number of {who} Foss",
        args={"query": "{who} Foss"},
        before=known("{who} Foss"),
    ),
    Use(
        "contacts:import",
        "Imported: 1 added",
        unspoken="It needs the text of a file.",
        args={"vcard": "BEGIN:VCARD\nVERSION:4.0\nFN:{who} Gran\nEND:VCARD\n"},
        then=finds("{who} Gran", "contacts:list"),
    ),
    Use(
        "contacts:list",
        "A {who}",
        say="list my contacts",
        before=known("A {who}"),
    ),
    Use(
        "contacts:remove",
        "Removed: {who} Holm",
        say="remove contact {who} Holm",
        args={"contact": "{who} Holm"},
        asks="Remove this contact?",
        before=known("{who} Holm"),
        then=lacks("{who} Holm", "contacts:list"),
    ),
    Use(
        "contacts:sync",
        "1 added",
        say="sync my contacts",
        before=has_a_card,
        then=finds("Sync of {who}", "contacts:list"),
    ),
    Use(
        "contacts:update",
        "Changed: {who} Iversen",
        unspoken=FIELDS,
        args={"contact": "{who} Iversen", "emails": ["{who}@example.com"]},
        asks="Change this contact?",
        before=known("{who} Iversen"),
        then=finds("{who}@example.com", "contacts:find", query="{who} Iversen"),
    ),
)


# ------------------------------------------------------------------ weather and maps


async def forget_requests(scene: Scene) -> None:
    for service in (scene.services.weather, scene.services.maps):
        service.asked.clear()
    scene.services.web.seen.clear()


async def weather_asked(scene: Scene) -> None:
    assert [path for path, _ in scene.services.weather.asked] == ["/v1/forecast"]


async def place_asked(scene: Scene) -> None:
    assert [query["q"] for _, query in scene.services.maps.asked] == ["Bergen stasjon"]


async def way_asked(scene: Scene) -> None:
    assert scene.services.maps.asked[-1][0].startswith("/route/v1/foot/")


WEATHER = tuple(
    Use(f"weather:{tool}", shows, say=say, before=forget_requests, then=weather_asked)
    for tool, say, shows in (
        ("now", "what is the weather", "Here 7°, rain"),
        ("hours", "will it rain", "Here 5° to 8°, rain"),
        ("days", "weather forecast", "Here today 5° to 9°, rain 80 %"),
    )
)
STATION = {"to": "Bergen stasjon"}
MAPS = (
    Use(
        "maps:find",
        "Bergen stasjon, 1.2 km south-east",
        say="find the place Bergen stasjon",
        args={"place": "Bergen stasjon"},
        before=forget_requests,
        then=place_asked,
    ),
    Use(
        "maps:route",
        "1.6 km, 20 min on foot to Bergen stasjon",
        say="how do I get to Bergen stasjon",
        args=STATION,
        before=forget_requests,
        then=way_asked,
    ),
    Use(
        "maps:next_step",
        "left onto Kaigaten",
        say="next step",
        before=first("maps:route", **STATION),
    ),
)


# ------------------------------------------------------------------ kasa


def light(*, on: bool, brightness: int = 50) -> Step:
    """Somebody uses the switch of the lamp; the fan runs then."""

    async def step(scene: Scene) -> None:
        lamp = scene.services.lamp.commands
        lamp.on, lamp.brightness = on, brightness
        scene.services.fan.commands.on = True

    return step


def lamp_is(*, on: bool, brightness: int = 50, fan: bool = True) -> Step:
    async def step(scene: Scene) -> None:
        lamp = scene.services.lamp.commands
        assert (lamp.on, lamp.brightness) == (on, brightness)
        assert scene.services.fan.commands.on is fan

    return step


KASA = (
    Use(
        "kasa:discover",
        "Desk lamp: off",
        say="find my lights",
        before=light(on=False),
    ),
    Use(
        "kasa:state",
        "Desk lamp: on, 40 %",
        say="which lights are on",
        before=light(on=True, brightness=40),
    ),
    Use(
        "kasa:switch",
        "Desk lamp: on",
        say="turn on the desk lamp",
        args={"device": "desk lamp", "on": True},
        before=light(on=False),
        then=lamp_is(on=True),
    ),
    Use(
        "kasa:dim",
        "Desk lamp: 30 %",
        say="dim the desk lamp to 30 percent",
        args={"device": "desk lamp", "brightness": 30},
        before=light(on=False),
        then=lamp_is(on=True, brightness=30),
    ),
    Use(
        "kasa:scene",
        "Evening",
        say="start the scene evening",
        args={"scene": "evening"},
        before=light(on=False),
        then=lamp_is(on=True, brightness=20, fan=False),
    ),
    Use(
        "kasa:set",
        "Fan: off",
        unspoken="It needs a list of states.",
        args={"states": [{"device": "fan", "on": False}]},
        before=light(on=False),
        then=lamp_is(on=False, fan=False),
    ),
)


# ------------------------------------------------------------------ web


def web_seen(*requests: tuple[str, str]) -> Step:
    async def step(scene: Scene) -> None:
        seen = [(method, path.partition("?")[0]) for method, path, *_ in scene.services.web.seen]
        assert seen == list(requests)

    return step


WEB = (
    Use(
        "web:search",
        "Growing peas",
        say="search the web for peas",
        args={"query": "peas"},
        before=forget_requests,
        then=web_seen(("GET", "/search")),
    ),
    Use(
        "web:fetch",
        "Sow peas in March.",
        unspoken="It needs an address.",
        args={"url": "{web}/peas"},
        before=forget_requests,
        then=web_seen(("GET", "/peas")),
    ),
    Use(
        "web:request",
        "Two bags of peas",
        unspoken="It needs an address, and is for text alone.",
        args={"url": "{web}/order", "method": "POST", "body": "peas"},
        asks="Send this web request?",
        before=forget_requests,
        then=web_seen(("POST", "/order")),
    ),
)

AT_SERVICES = (*CONTACTS, *WEATHER, *MAPS, *KASA, *WEB)
