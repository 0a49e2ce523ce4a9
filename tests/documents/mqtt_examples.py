"""The examples and tables of docs/mqtt.md as data, and a cloud that speaks MQTT by that document
alone.

Nothing of glassd's own MQTT code is used here, so that an example is judged as another program
would.
"""

import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiomqtt
import msgpack
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.documents.blocks import ALL, ROOT
from tests.scenarios.network import JSON, Onlooker, Said

DOCUMENT = "docs/mqtt.md"
TEXT = (ROOT / DOCUMENT).read_text(encoding="utf-8")
MORE = "…"
_MARK = "\0"
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
FORMS: Mapping[str, str] = {
    "call": _UUID,
    "boot": _UUID,
    "instance": "[0-9a-f]{16}",
    "sha256": "[0-9a-f]{64}",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "version": ".+",
    "glassd": r"\d+(\.\w+)+",
    "url": r"https?://\S+",
    "problem": ".+",
    "seconds": "",
    "ms": "",
    "n": "",
}
"""Placeholder → the form of its text; numbers have none."""
SAME_ALL_ALONG = frozenset({"call", "boot", "instance"})
HELD_S = 30
"""Seconds that a broker may have held a message back, and so counted its expiry down."""


@dataclass(frozen=True)
class Example:
    """One message of the document: title, properties by name, body with placeholders."""

    title: str
    headers: Mapping[str, str]
    body: Any

    @property
    def kind(self) -> str:
        return str(self.body["k"])

    @property
    def from_edge(self) -> bool:
        return self.headers["from"] == "edge"

    def properties(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name != "from"}


def read(text: str, edge_id: str = "edge-1") -> Example:
    """Parse one block."""
    head, _, body = text.replace("/e/edge-1/", f"/e/{edge_id}/").partition("\n\n")
    title, *lines = head.splitlines()
    headers = dict(line.split(": ", 1) for line in lines)
    assert title.startswith("# "), title
    assert headers["from"] in ("edge", "cloud"), title
    return Example(title[2:], headers, _json(body))


def _json(text: str) -> Any:
    """JSON with placeholders, which become marked texts, and `…`, which becomes an entry of its
    own.
    """
    text = re.sub(r'"?<(\w+)>"?', lambda found: json.dumps(_MARK + found[1]), text)
    text = re.sub(r"(?<=[{\[])\s*…\s*(?=[}\]])", MORE, text)
    text = re.sub(r"…(?=\s*\])", f'"{MORE}"', text)
    text = re.sub(r"…(?=\s*\})", f'"{MORE}": true', text)
    return json.loads(text)


def examples(edge_id: str = "edge-1") -> dict[str, Example]:
    """Every message of the document, by title."""
    found = [
        read(each.text, edge_id)
        for each in ALL
        if each.document == DOCUMENT and each.language == "mqtt"
    ]
    assert len({each.title for each in found}) == len(found), "two examples have the same title"
    return {each.title: each for each in found}


# ------------------------------------------------------------------ expected and real


@dataclass
class Conversation:
    """What the placeholders of a conversation stand for, as far as it is known."""

    known: dict[str, Any] = field(default_factory=dict)
    exact: bool = True
    """False with a broker that tells a subscriber neither the publisher's QoS nor whether it
    published as retained.
    """

    def match(self, example: Example, said: Said) -> None:
        """Fail unless a received message is what the example says, naming the place."""
        wanted, real = example.properties(), properties_of(said)
        if not self.exact:
            del wanted["retain"], real["retain"], wanted["qos"], real["qos"]
        assert real.keys() == wanted.keys(), (
            f"{example.title}: properties {sorted(real)}, not {sorted(wanted)}"
        )
        for name, value in wanted.items():
            self._property(f"{example.title}: {name}", name, value, real[name])
        self._value(f"{example.title}: body", example.body, said.body)

    def _property(self, place: str, name: str, wanted: str, real: str) -> None:
        if name == "expiry":
            assert real.isdigit(), f"{place} is {real}"
            assert wanted == "<seconds>" or wanted.isdigit(), (
                f"{place} is {wanted!r}, no number of seconds"
            )
            most = 7 * 24 * 3600 if wanted == "<seconds>" else int(wanted)
            least = 1 if wanted == "<seconds>" else int(wanted) - HELD_S
            assert least <= int(real) <= most, f"{place} is {real}, not {wanted}"
        elif found := re.fullmatch(r"<(\w+)>", wanted):
            self._placeholder(place, found[1], real if found[1] == "call" else _number(place, real))
        else:
            assert real == wanted, f"{place} is {real!r}, not {wanted!r}"

    def _value(self, place: str, wanted: Any, real: Any) -> None:
        if isinstance(wanted, str) and wanted.startswith(_MARK):
            self._placeholder(place, wanted[1:], real)
        elif isinstance(wanted, dict):
            self._map(place, wanted, real)
        elif isinstance(wanted, list):
            assert isinstance(real, list), f"{place} is {real!r}"
            whole = wanted[:-1] if wanted[-1:] == [MORE] else wanted
            assert len(real) == len(whole) or (
                len(real) > len(whole) and len(whole) < len(wanted)
            ), f"{place}: {len(real)} entries"
            for number, (one, other) in enumerate(zip(whole, real, strict=False)):
                self._value(f"{place}[{number}]", one, other)
        else:
            assert type(real) is type(wanted), f"{place} is {real!r}, not {wanted!r}"
            assert real == wanted, f"{place} is {real!r}, not {wanted!r}"

    def _map(self, place: str, wanted: Mapping[str, Any], real: Any) -> None:
        assert isinstance(real, dict), f"{place} is {real!r}"
        named = wanted.keys() - {MORE}
        missing, surplus = named - real.keys(), real.keys() - named
        assert not missing, f"{place} lacks {sorted(missing)}"
        assert not surplus or MORE in wanted, f"{place} has {sorted(surplus)} too"
        for key in named:
            self._value(f"{place}.{key}", wanted[key], real[key])

    def _placeholder(self, place: str, name: str, real: Any) -> None:
        form = FORMS[name]
        if form:
            assert isinstance(real, str), f"{place} is {real!r}, not text"
            assert re.fullmatch(form, real), f"{place} is {real!r}, no <{name}>"
        else:
            kind = (int, float) if name == "seconds" else int
            assert isinstance(real, kind), f"{place} is {real!r}, no <{name}>"
            assert not isinstance(real, bool), f"{place} is {real!r}, no <{name}>"
            assert real >= (1 if name == "n" else 0), f"{place} is {real!r}, no <{name}>"
        if name in SAME_ALL_ALONG:
            assert self.known.setdefault(name, real) == real, (
                f"{place} is {real!r}, elsewhere <{name}> is {self.known[name]!r}"
            )

    def filled(self, value: Any) -> Any:
        """A body with what is known in the place of its placeholders."""
        if isinstance(value, str) and value.startswith(_MARK):
            return self.known[value[1:]]
        if isinstance(value, dict):
            return {key: self.filled(inner) for key, inner in value.items()}
        return [self.filled(inner) for inner in value] if isinstance(value, list) else value

    def concrete(self, example: Example) -> Said:
        """An example as a message that a subscriber could have received."""
        headers = example.properties()
        user = {
            name[5:]: str(self._text(value))
            for name, value in headers.items()
            if name.startswith("user ")
        }
        correlation = headers.get("correlation-data")
        expiry = headers.get("expiry")
        return Said(
            headers["topic"],
            self.filled(example.body),
            headers["retain"] == "yes",
            headers.get("content-type"),
            None if correlation is None else uuid.UUID(self._text(correlation)).bytes,
            headers.get("response-topic"),
            None if expiry is None else int(self._text(expiry)),
            user,
            int(headers["qos"]),
        )

    def _text(self, value: str) -> Any:
        return self.known[value[1:-1]] if re.fullmatch(r"<\w+>", value) else value


def _number(place: str, text: str) -> int:
    assert text.isdigit(), f"{place} is {text!r}, no number"
    return int(text)


def properties_of(said: Said) -> dict[str, str]:
    """A received message's properties under the document's names."""
    found: dict[str, str | None] = {
        "topic": said.topic,
        "qos": str(said.qos),
        "retain": "yes" if said.retained else "no",
        "expiry": None if said.expiry_s is None else str(said.expiry_s),
        "content-type": said.content_type,
        "correlation-data": None
        if said.correlation is None
        else str(uuid.UUID(bytes=said.correlation)),
        "response-topic": said.response_topic,
        **{f"user {name}": value for name, value in said.user.items()},
    }
    return {name: value for name, value in found.items() if value is not None}


def payload(said: Said) -> bytes:
    return json.dumps(said.body).encode() if said.content_type == JSON else msgpack.packb(said.body)


# ------------------------------------------------------------------ a cloud


class Cloud(Onlooker):
    """A bare MQTT client that hears everything of one edge, and publishes examples."""

    async def subscribe(self, topic: str) -> None:
        # Retain as published: else a broker clears the flag for who has subscribed before.
        await self._client.subscribe(topic, options=SubscribeOptions(qos=1, retainAsPublished=True))

    async def publish(self, example: Example, conversation: Conversation) -> None:
        said = conversation.concrete(example)
        properties = Properties(PacketTypes.PUBLISH)
        properties.ContentType = said.content_type
        properties.MessageExpiryInterval = said.expiry_s
        properties.UserProperty = list(said.user.items())
        if said.correlation is not None:
            properties.CorrelationData = said.correlation
        if said.response_topic is not None:
            properties.ResponseTopic = said.response_topic
        await self._client.publish(
            said.topic, payload(said), qos=said.qos, retain=said.retained, properties=properties
        )

    async def gets(
        self,
        example: Example,
        conversation: Conversation,
        *,
        since: int,
        fits: Callable[[Said], bool] = bool,
    ) -> Said:
        """Wait for the message that an example shows, and compare it."""

        def the_one(said: Said) -> bool:
            other = (
                "call" in conversation.known
                and said.body.get("id", conversation.known["call"]) != conversation.known["call"]
            )
            return (
                said.topic == example.headers["topic"]
                and said.kind == example.kind
                and not other
                and fits(said)
            )

        said = await self.hears(example.title, the_one, since=since)
        conversation.match(example, said)
        return said


@asynccontextmanager
async def a_cloud(host: str, port: int, edge_id: str) -> AsyncIterator[Cloud]:
    """Connect as the document says that a cloud does, and hear all that the edge says."""
    import asyncio

    client = aiomqtt.Client(
        host,
        port,
        protocol=aiomqtt.ProtocolVersion.V5,
        identifier=f"cloud-{uuid.uuid4().hex[:8]}",
        timeout=40,
    )
    async with client:
        cloud = Cloud(client, edge_id)
        listening = asyncio.ensure_future(cloud.listen())
        try:
            await cloud.subscribe(f"{cloud.prefix}/#")
            yield cloud
        finally:
            listening.cancel()
            await asyncio.wait({listening})


# ------------------------------------------------------------------ tables


def tables() -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(heading above it, names of the columns, rows) of every table of the document."""
    heading, lines, fenced = "", TEXT.splitlines(), False
    for number, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            heading = line.lstrip("#").strip().strip("`")
        if line.startswith("|---"):
            rows = []
            for row in lines[number + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row))
            yield heading, _cells(lines[number - 1]), rows


def table(heading: str, first: str) -> list[list[str]]:
    """The rows of the one table under a heading whose first column has this name."""
    found = [rows for above, names, rows in tables() if above == heading and names[0] == first]
    assert len(found) == 1, f"{DOCUMENT}: {len(found)} tables of {first!r} under {heading!r}"
    return found[0]


def words(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def fields(heading: str) -> set[str]:
    return {words(row[0])[0] for row in table(heading, "field")}


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]
