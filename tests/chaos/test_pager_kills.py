"""Pages over many kills of both sides and of the cloud: what was accepted arrives once, and the
sender is told once of what did not arrive.
"""

import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.callers import BrokeOff, NotThere
from tests.chaos.cast import until
from tests.chaos.places import AGAIN_S, FINAL_S, Call, Cloud, Network, Place, kill_moments

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(180)]
LATEST_S = 1.5
"""The kill comes at most so long after the call began."""
QUICK_S = 0.08
"""Half of the kills come as early as this: sending a page takes no longer."""
PAGES = 16
FIRST_OFFLINE = 12
"""The first round in which the cloud is away: pages wait on disk."""
BOTH_EVERY = 3
"""In each round of so many the recipient is killed, too."""
LIFE_S = 2.0
"""How long a call lives of which the answer is lost."""
REFUSED = 3
"""Pages to a pager that nobody has, sent offline."""
NOBODY = "PAGER-0000"


@pytest.fixture
def cloud(tmp_path):
    made = Cloud(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def pagers(cloud, tmp_path):
    """Anna, who sends, and Ben."""
    places = [
        Place(tmp_path / name, name, "\n[tool.pager]\nenabled = true\n") for name in ("a", "b")
    ]
    try:
        for place in places:
            place.start(cloud.where)
        for place in places:
            place.await_cloud()
        yield places
    finally:
        for place in places:
            place.stop()


def created(place: Place) -> str:
    answer = place.ask("pager:create", {"name": place.name})
    assert answer["ok"], answer
    assert answer["data"]["registered"] is True
    return answer["data"]["pager"]


@pytest.mark.requirement("I15-pager-relay")
def test_each_page_arrives_once_over_many_kills_of_both_sides(cloud, pagers):
    anna, ben = pagers
    created(anna)
    to = created(ben)
    anna.allow("pager:send")
    quick = iter(kill_moments("quick", PAGES // 2, QUICK_S))
    slow = iter(kill_moments("slow", PAGES // 2, LATEST_S))
    broken_off, waited = 0, 0
    for number in range(PAGES):
        if number == FIRST_OFFLINE:
            cloud.stop()
            until(lambda: anna.status()["uplink"]["state"] != "up", "it knows that it is offline")
        call = Call(
            anna, "pager:send", page(number, to), f"page-{number}", promised=number % 2 == 1
        )
        time.sleep(next(quick if number % 4 < 2 else slow))
        killed = pagers if number % BOTH_EVERY == 0 else [anna]
        for place in killed:
            place.kill()
        broken_off += call.broken_off()
        for place in killed:
            place.start(cloud.where)
        if number < FIRST_OFFLINE:
            anna.await_cloud()
        answer = call.final()
        assert answer["ok"], (number, answer)
        waited += answer["data"]["waits"]
    print(f"pages: {waited} waited, {broken_off} callers broken off")
    assert anna.kills == PAGES
    assert waited >= PAGES - FIRST_OFFLINE, "those of the rounds without a cloud waited"
    assert broken_off >= 1, "kills came during calls"

    for place in pagers:
        place.kill()
    cloud.start()
    for place in pagers:
        place.start(cloud.where)
    pages = sorted(f"page {number}" for number in range(PAGES))
    until(lambda: set(pages) <= set(inbox(ben)), "each has arrived", within_s=40, every_s=0.2)
    for number in range(PAGES):
        again = anna.ask("pager:send", page(number, to), f"page-{number}")
        assert again["ok"], again
    last = anna.ask("pager:send", page(PAGES, to), f"page-{PAGES}")
    assert last["ok"], last
    until(lambda: f"page {PAGES}" in inbox(ben), "the last has arrived", every_s=0.2)
    assert sorted(inbox(ben)) == sorted([*pages, f"page {PAGES}"])


def page(number: int, to: str) -> dict[str, Any]:
    return {"to": to, "text": f"page {number}"}


def inbox(place: Place) -> list[str]:
    return [one["message"] for one in place.ask("pager:inbox", {})["data"]["messages"]]


# ------------------------------------------------------------------ placed kills


@pytest.fixture
def ways(tmp_path):
    """The ways of Anna and of Ben to the cloud."""
    made = [Network(tmp_path, name) for name in ("a", "b")]
    try:
        yield made
    finally:
        for way in made:
            way.stop()


@pytest.fixture
def far_pagers(cloud, ways, tmp_path):
    """Anna and Ben, each behind a way of their own."""
    places = [
        Place(tmp_path / name, name, "\n[tool.pager]\nenabled = true\n") for name in ("a", "b")
    ]
    try:
        for place, way in zip(places, ways, strict=True):
            place.start(way.to(cloud))
        for place in places:
            place.await_cloud()
        yield places
    finally:
        for place in places:
            place.stop()


@pytest.mark.requirement("I15-pager-relay", "I15-pager-told")
def test_a_page_whose_answers_are_lost_arrives_once_and_a_refused_one_is_told_once(
    cloud, ways, far_pagers
):
    anna, ben = far_pagers
    created(anna)
    to = created(ben)
    anna.allow("pager:send")
    sent = [
        *(_lose_the_relays_answer(number, to, cloud, ways[0], far_pagers) for number in range(4)),
        *(_lose_the_delivery(number, to, cloud, ways, far_pagers) for number in range(4, 6)),
    ]
    _send_to_nobody(cloud, ways, anna)
    last = anna.ask("pager:send", page(99, to), "page-99")
    assert last["ok"], last
    sent.append("page 99")
    until(lambda: "page 99" in inbox(ben), "the last has arrived", every_s=0.2)
    arrived = inbox(ben)
    for place in far_pagers:
        place.stop()
    cloud.stop()

    assert sorted(arrived) == sorted(sent)
    stored = Counter(row[0] for row in rows(cloud.state, "SELECT id FROM pages"))
    assert list(stored.values()) == [1] * len(sent), "the relay knows each page once, by one id"
    told = Counter(text for (text,) in rows(ben.folder / "state", "SELECT text FROM alarms"))
    assert sorted(told.elements()) == sorted(f"From a ({_of(told)}): {text}" for text in sent)
    told = Counter(text for (text,) in rows(anna.folder / "state", "SELECT text FROM alarms"))
    assert told == {f"Your page to {NOBODY} was not delivered: nobody has this pager.": REFUSED}


def _lose_the_relays_answer(
    number: int, to: str, cloud: Cloud, way: Network, places: list[Place]
) -> str:
    """Send a page that the relay takes and delivers, and lose its answer to the sender. The kill
    comes while the sender waits; in rounds 2 and 3 after it has given up. Then its caller asks
    again: at once, or (odd rounds) when the life of its call is over.
    """
    anna, ben = places
    text, key = f"page {number}", f"page-{number}"
    before = way.lost
    way.lose("down", "result")
    began = time.monotonic()
    answers: list[dict[str, Any]] = []
    waiter = threading.Thread(target=_ask, args=(anna, page(number, to), key, answers), daemon=True)
    waiter.start()
    until(lambda: text in inbox(ben), f"{text} has arrived", every_s=AGAIN_S)
    until(lambda: way.lost > before, f"the answer to {text} is lost", every_s=AGAIN_S)
    if number >= 2:
        waiter.join(FINAL_S)
        assert [answer["ok"] for answer in answers] == [False], answers
    anna.kill()
    if number % 2:
        time.sleep(max(0.0, began + LIFE_S - time.monotonic()))
    anna.start(way.to(cloud))
    anna.await_cloud()
    answer = anna.ask_until_final("pager:send", page(number, to), key)
    assert answer["ok"], answer
    return text


def _ask(place: Place, args: dict[str, Any], key: str, answers: list[dict[str, Any]]) -> None:
    with suppress(NotThere, BrokeOff):
        answers.append(place.ask("pager:send", args, key, ttl_s=LIFE_S))


def _lose_the_delivery(
    number: int, to: str, cloud: Cloud, ways: list[Network], places: list[Place]
) -> str:
    """Send a page that its recipient stores and announces, lose what it answers, and kill it and
    the relay, so that the page is delivered again.
    """
    anna, ben = places
    text = f"page {number}"
    before = ways[1].lost
    ways[1].lose("up", "result")
    answer = anna.ask("pager:send", page(number, to), f"page-{number}")
    assert answer["ok"], answer
    until(lambda: text in inbox(ben), f"{text} is stored", every_s=AGAIN_S)
    until(lambda: ways[1].lost > before, f"the answer to {text} is lost", every_s=AGAIN_S)
    ben.kill()
    cloud.kill()
    assert "waits" in _states(cloud), "the relay does not know that it was delivered"
    cloud.start()
    ways[0].to(cloud)
    ben.start(ways[1].to(cloud))
    for place in places:
        place.await_cloud()
    until(lambda: _states(cloud) == {"delivered"}, f"{text} is delivered again", every_s=AGAIN_S)
    return text


def _send_to_nobody(cloud: Cloud, ways: list[Network], anna: Place) -> None:
    """Send pages offline that the relay will refuse, and kill the sender about when it hears so."""
    cloud.stop()
    until(lambda: anna.status()["uplink"]["state"] != "up", "it knows that it is offline")
    for number in range(REFUSED):
        answer = anna.ask("pager:send", page(number, NOBODY), f"nobody-{number}")
        assert answer["data"]["waits"], answer
    cloud.start()
    for way in ways:
        way.to(cloud)
    for moment_s in kill_moments("refused", REFUSED, 0.4):
        anna.await_cloud()
        time.sleep(moment_s)
        anna.kill()
        anna.start(ways[0].to(cloud))
    until(lambda: _fates(anna) == {"failed": REFUSED}, "each is refused", every_s=AGAIN_S)


def _fates(place: Place) -> dict[str, int]:
    sent = place.ask("pager:inbox", {"sent": True})["data"]["messages"]
    return dict(Counter(one["state"] for one in sent if one["to"] == NOBODY))


def _states(cloud: Cloud) -> set[str]:
    return {state for (state,) in rows(cloud.state, "SELECT state FROM pages")}


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of the database below this folder that has this table."""
    table = sql.rpartition(" ")[2]
    for file in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
            if database.execute(there, (table,)).fetchone():
                return database.execute(sql).fetchall()
    return []


def _of(told: Counter[str]) -> str:
    """Return the sender whom these announcements name."""
    return next(iter(told), "").partition("(")[2].partition(")")[0]
