"""The HTTP examples of a document: read from it, sent to a daemon, and compared with what came
back.

An example is a fenced block of the language `http`: request line, headers, body, an empty line,
status, headers, body. What differs from run to run is written as `<kind>` or `<kind NAME>`; `…`
stands for anything more. The document explains both.
"""

import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.documents.blocks import Block, blocks

SOON_S = 40.0
OWNER = " (owner.sock)"
MORE = "…"
KINDS = {
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "number": r"-?\d+(?:\.\d+)?",
    "text": r"[\s\S]*",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)",
    "digest": r"[0-9a-f]{64}",
}
"""What may stand in a text; `number` outside of quotes is a JSON number."""
WHOLE: dict[str, Callable[[Any], bool]] = {
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "delivery": lambda value: (
        isinstance(value, str) or (isinstance(value, dict) and "state" in value)
    ),
}
"""What stands for a whole value that is not text."""
_PLACE = re.compile(r"<([a-z]+)(?: ([A-Z]+))?>")
_NAME = re.compile(r"<([A-Z]+)>")

Names = dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What a request got; the body as text."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True)
class Example:
    """One request and the reply that the document shows."""

    where: str
    text: str
    method: str
    path: str
    owner: bool
    headers: Mapping[str, str]
    body: str
    reply: Reply

    @property
    def stream(self) -> bool:
        return "text/event-stream" in self.reply.headers.get("Content-Type", "")


@dataclass
class Replayed:
    """An example, what really came, and the names that were known before."""

    example: Example
    reply: Reply | None
    names: Names = field(default_factory=dict)
    problem: str = ""


def examples(document: str) -> list[Example]:
    """Read every example of a document, in order."""
    return [_read(block) for block in blocks(document) if block.language == "http"]


def _read(block: Block) -> Example:
    where = f"{block.document}:{block.line}"
    found = re.search(r"(?m)^\d{3}$", block.text)
    assert found, f"{where}: an example has a line with the status of the reply"
    request, reply = block.text[: found.start()], block.text[found.start() :]
    first, headers, body = _parts(request)
    line = re.fullmatch(r"(GET|POST|PUT|DELETE) (/\S*)( \(owner\.sock\))?", first)
    assert line, (
        f"{where}: a request line is METHOD PATH, "
        f"and{OWNER} where the owner's socket is meant: {first!r}"
    )
    status, reply_headers, reply_body = _parts(reply)
    return Example(
        where,
        block.text,
        line[1],
        line[2],
        bool(line[3]),
        headers,
        body,
        Reply(int(status), reply_headers, reply_body),
    )


def _parts(text: str) -> tuple[str, dict[str, str], str]:
    """The first line, the headers below it, and the rest."""
    first, _, rest = text.strip("\n").partition("\n")
    headers: dict[str, str] = {}
    while found := re.match(r"([A-Z][A-Za-z-]*): (.*)(?:\n|$)", rest):
        headers[found[1]] = found[2]
        rest = rest[found.end() :]
    return first, headers, rest.strip("\n")


# ------------------------------------------------------------------ sending


class Daemon:
    """The two sockets of a daemon; `send` is one request on a connection of its own."""

    def __init__(self, control: Path, owner: Path) -> None:
        self._control = control
        self._owner = owner

    def send(self, example: Example, names: Names) -> Reply:
        """Send the request with the names filled in. Of a stream as much is read as the example
        shows.
        """
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.settimeout(SOON_S)
            connection.sock.connect(str(self._owner if example.owner else self._control))
            body = _filled(example.body, names).encode() if example.body else None
            headers = {name: _filled(value, names) for name, value in example.headers.items()}
            connection.request(example.method, _filled(example.path, names), body, headers)
            answer = connection.getresponse()
            found = dict(answer.getheaders())
            if not found.get("Content-Type", "").startswith("text/event-stream"):
                return Reply(answer.status, found, answer.read().decode())
            return Reply(answer.status, found, _streamed(answer, example, names))
        finally:
            connection.close()


def _streamed(answer: http.client.HTTPResponse, example: Example, names: Names) -> str:
    """Read until the stream ends, or shows all that the example does."""
    said = ""
    end = time.monotonic() + SOON_S
    while time.monotonic() < end and (line := answer.readline()):
        said += line.decode()
        if (
            line == b"\n"
            and example.reply.body.endswith(MORE)
            and not _stream(example.reply.body, said, dict(names))
        ):
            break
    return said


def _filled(text: str, names: Names) -> str:
    missing = [name for name in _NAME.findall(text) if name not in names]
    assert not missing, f"no reply before gave <{missing[0]}>"
    return _NAME.sub(lambda found: names[found[1]], text)


# ------------------------------------------------------------------ comparing


def differences(expected: Reply, real: Reply, names: Names) -> list[str]:
    """Everything in which the real reply is not what is shown; names that are given are kept."""
    found = (
        [f"status {real.status}, not {expected.status}: {real.body[:300]}"]
        if real.status != expected.status
        else []
    )
    for name, value in expected.headers.items():
        found += _text(f"header {name}", value, real.headers.get(name, "(none)"), names)
    kind = real.headers.get("Content-Type", "")
    if kind.startswith("text/event-stream"):
        return found + _stream(expected.body, real.body, names)
    if kind.startswith("application/json") and expected.body:
        return found + _json("", json.loads(expected.body), json.loads(real.body), names)
    return found + _lines(expected.body.splitlines(), real.body.splitlines(), names)


def _json(where: str, expected: Any, real: Any, names: Names) -> list[str]:
    if isinstance(expected, str):
        whole = _PLACE.fullmatch(expected)
        if whole and whole[1] in WHOLE:
            return [] if WHOLE[whole[1]](real) else [f"{where}: {real!r} is no {whole[1]}"]
        return (
            _text(where, expected, real, names)
            if isinstance(real, str)
            else [f"{where}: {real!r}, not {expected!r}"]
        )
    if isinstance(expected, dict) and isinstance(real, dict):
        return _object(where, expected, real, names)
    if isinstance(expected, list) and isinstance(real, list):
        return _list(where, expected, real, names)
    same = expected == real and isinstance(expected, bool) is isinstance(real, bool)
    return [] if same else [f"{where}: {real!r}, not {expected!r}"]


def _object(
    where: str, expected: Mapping[str, Any], real: Mapping[str, Any], names: Names
) -> list[str]:
    shown = expected.keys() - {MORE}
    found = [f"{where}.{key}: is not there" for key in expected if key in shown - real.keys()]
    if MORE not in expected:
        found += [
            f"{where}.{key}: is there and is not shown" for key in real if key not in expected
        ]
    for key in expected:
        if key in shown and key in real:
            found += _json(f"{where}.{key}", expected[key], real[key], names)
    return found


def _list(where: str, expected: list[Any], real: list[Any], names: Names) -> list[str]:
    return _sequence(
        where,
        expected,
        real,
        lambda one, other, known: _json(f"{where}[]", one, other, known),
        names,
    )


def _sequence(
    where: str,
    expected: list[Any],
    real: list[Any],
    compare: Callable[[Any, Any, Names], list[str]],
    names: Names,
) -> list[str]:
    """Compare in order; `…` skips as many as it takes until the next one shown is there."""
    left, skipping = list(real), False
    for one in expected:
        if one == MORE:
            skipping = True
            continue
        problems = [f"{where}: there is no more, where {str(one)[:80]} is shown"]
        while left:
            known = dict(names)
            problems = compare(one, left.pop(0), known)
            if not problems:
                names.update(known)
                break
            if not skipping:
                break
        if problems:
            return problems
        skipping = False
    return (
        [] if skipping or not left else [f"{where}: {str(left[0])[:80]} is there and is not shown"]
    )


def _text(where: str, expected: str, real: str, names: Names) -> list[str]:
    pattern, at, given = "", 0, []
    for found in re.finditer(f"{_PLACE.pattern}|{_NAME.pattern}", expected):
        pattern += re.escape(expected[at : found.start()])
        if found[3]:
            pattern += re.escape(names.get(found[3], found[0]))
        else:
            assert found[1] in KINDS, (
                f"{where}: <{found[1]}> is no kind; there are {', '.join((*KINDS, *WHOLE))}"
            )
            pattern += f"({KINDS[found[1]]})"
            given.append(found[2])
        at = found.end()
    match = re.fullmatch(pattern + re.escape(expected[at:]), real)
    if match is None:
        return [f"{where}: {real!r}, not {expected!r}"]
    names.update({name: value for name, value in zip(given, match.groups(), strict=True) if name})
    return []


def _stream(expected: str, real: str, names: Names) -> list[str]:
    """Compare a stream block by block."""
    shown, came = _blocks(expected), _blocks(real)
    return _sequence(
        "stream", [MORE if one == [MORE] else one for one in shown], came, _block, names
    )


def _blocks(text: str) -> list[list[str]]:
    return [block.splitlines() for block in re.split(r"\n\n+", text.strip("\n")) if block]


def _block(expected: list[str], real: list[str], names: Names) -> list[str]:
    found = [f"stream: {real}, not {expected}"] if len(expected) != len(real) else []
    for one, other in zip(expected, real, strict=False):
        if one.startswith("data: ") and other.startswith("data: "):
            found += _json("data", json.loads(one[6:]), json.loads(other[6:]), names)
        else:
            found += _text("stream", one, other, names)
    return found


def _lines(expected: list[str], real: list[str], names: Names) -> list[str]:
    return _sequence(
        "body", expected, real, lambda one, other, known: _text("body", one, other, known), names
    )


# ------------------------------------------------------------------ examples that are wrong


def mutants(expected: Reply) -> Iterator[tuple[str, Reply]]:
    """Replies that are not what is shown: another status, a value changed, a key renamed."""
    yield "status", Reply(expected.status + 1, expected.headers, expected.body)
    for name in expected.headers:
        yield (
            name,
            Reply(expected.status, {**expected.headers, name: "another/kind"}, expected.body),
        )
    if not expected.body:
        yield "body", Reply(expected.status, expected.headers, '{"more": 1}')
        return
    for what, text in _wrong_texts(expected.body):
        yield what, Reply(expected.status, expected.headers, text)


def _wrong_texts(body: str) -> Iterator[tuple[str, str]]:
    if body.startswith("{"):
        for what, value in _wrong_values("", json.loads(body)):
            yield what, json.dumps(value, ensure_ascii=False)
        return
    lines = body.splitlines()
    for number, line in enumerate(lines):
        if not line or line == MORE:
            continue
        prefix = "data: " if line.startswith("data: {") else ""
        wrong = (
            [json.dumps(v, ensure_ascii=False) for _, v in _wrong_values("", json.loads(line[6:]))]
            if prefix
            else [line + " wrong"]
        )
        for one in wrong:
            if not (number == 0 and _PLACE.search(line) and not prefix):
                yield (
                    f"line {number}",
                    "\n".join([*lines[:number], prefix + one, *lines[number + 1 :]]),
                )


def _wrong_values(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The value with one thing wrong in it, again and again."""
    if isinstance(value, dict):
        for key in value:
            if key == MORE:
                continue
            yield (
                f"{where}.{key} renamed",
                {(f"{k}_" if k == key else k): v for k, v in value.items()},
            )
            for what, wrong in _wrong_values(f"{where}.{key}", value[key]):
                yield what, {**value, key: wrong}
        if MORE not in value:
            yield f"{where} with more", {**value, "no_such_key": 1}
    elif isinstance(value, list):
        for index, one in enumerate(value):
            for what, wrong in () if one == MORE else _wrong_values(f"{where}[{index}]", one):
                yield what, [*value[:index], wrong, *value[index + 1 :]]
        if MORE not in value:
            yield f"{where} with more", [*value, "no such element"]
    elif isinstance(value, bool):
        yield where, not value
    else:
        yield where, ["no such value"]
