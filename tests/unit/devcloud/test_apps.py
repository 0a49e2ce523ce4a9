"""The sample apps: they compute real results, and refuse what they cannot do."""

import base64
import math
import random
import struct
import zlib

import pytest
from hypothesis import given, settings, strategies as st

from edge.devcloud.apps import calc, photo, prime, slowpoke, storyteller, summarise, tasks
from edge.devcloud.apps.state import STATE_ENV
from edge.devcloud.appserver import AppServer
from edge.devcloud.definitions import check_submission
from edge.devcloud.main import sample_apps
from edge.devcloud.sdk import CallContext, Progress
from tools_cache.schema import compile_schema

ME = CallContext("me")


def test_every_sample_would_pass_the_console():
    apps = sample_apps()
    for app in apps:
        check_submission(
            app.package,
            {
                "name": app.name,
                "tools": list(app.tools),
                "hardwareRequirements": list(app.hardware),
            },
        )
    assert len(apps) >= 5
    assert {a.package for a in apps if a.lacks({})} == {"com.example.photo"}
    tools = [t for a in apps for t in a.tools]
    assert any(t["queueable"] for t in tools)
    assert any(t.get("mentraExtensions", {}).get("activationPhrases") for t in tools)
    assert {t["idempotent"] for t in tools} == {True, False}


def tool(app: AppServer, name):
    return app._tools[name].handler


# ------------------------------------------------------------------ calc


@settings(max_examples=50, deadline=None)
@given(st.integers(-999, 999), st.integers(-999, 999), st.integers(1, 999))
def test_arithmetic_is_that_of_python(a, b, c):
    assert calc.evaluate(f"({a}) + {b} * {c}") == a + b * c
    assert calc.evaluate(f"({a} - ({b})) / {c}") == pytest.approx((a - b) / c)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 × (4 + 5)^2", 243),
        ("√(2)", math.sqrt(2)),
        ("7 // 2 % 2", 1),
        ("-2**2", -4),
        ("max(1, 2, pi)", math.pi),
        ("10 ÷ 4", 2.5),
        ("5 − 7", -2),
    ],
)
def test_the_spelling_of_people_is_understood(text, value):
    assert calc.evaluate(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.b",
        "[1]",
        "'a'*3",
        "True",
        "lambda: 1",
        "2**99999",
        "9**9**9",
        "(-8)**0.5",
        "1/0",
        "1e308*10",
        "sqrt(-1)",
        "1 +",
        "9" * 201,
        "min()",
        "round(1, ndigits=2)",
        "open(1)",
        "1 if 1 else 2",
    ],
)
def test_what_is_not_arithmetic_is_refused_with_words(text):
    with pytest.raises(ValueError, match=r"\w"):
        calc.evaluate(text)


@pytest.mark.parametrize(
    ("value", "source", "target", "made"),
    [
        (100, "C", "F", 212),
        (0, "K", "C", -273.15),
        (5, "km", "mi", 3.106856),
        (1, "lb", "g", 453.59237),
        (36, "km/h", "m/s", 10),
        (1, "kWh", "kJ", 3600),
    ],
)
def test_units_are_converted(value, source, target, made):
    assert calc.convert(value, source, target) == pytest.approx(made)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [("km", "kg", "same thing"), ("C", "m", "same thing"), ("parsec", "m", "parsec")],
)
def test_units_that_do_not_fit_are_named(source, target, words):
    with pytest.raises(ValueError, match=words):
        calc.convert(1, source, target)


def test_the_calculator_shows_what_it_was_asked():
    made = tool(calc.app, "evaluate")({"expression": " 0.1+0.2 "}, ME)
    assert made["render"]["display"]["text"] == "0.1+0.2 = 0.3"
    assert tool(calc.app, "evaluate")({"expression": "2**60"}, ME)["data"]["value"] == str(2**60)


# ------------------------------------------------------------------ prime


async def factorised(number):
    return [value async for value in tool(prime.app, "factorise")({"number": number}, ME)]


@pytest.mark.parametrize(
    "number", [1, 2, 360, 600851475143, 1009**2 * 10007, 1000000007 * 1000000009, 2**61 - 1, 97**5]
)
async def test_the_factors_multiply_to_the_number_and_are_prime(number):
    *words, result = await factorised(number)
    found = [int(f) for f in result["data"]["factors"]]
    assert math.prod(found) == number
    assert all(prime.is_prime(f) for f in found)
    assert words
    assert all(isinstance(w, Progress) for w in words)


def test_primality_agrees_with_trial_division():
    assert [n for n in range(2000) if prime.is_prime(n)] == [
        n for n in range(2, 2000) if all(n % d for d in range(2, math.isqrt(n) + 1))
    ]


@pytest.mark.parametrize("number", ["", "-5", "0", "1e5", "9" * 41, "٣"])
async def test_what_is_no_whole_number_is_refused(number):
    with pytest.raises(ValueError, match="number"):
        await factorised(number)


def test_factors_are_written_as_mathematics_does():
    assert (
        prime.written(360, [2, 5, 2, 3, 3, 2]),
        prime.written(7, [7]),
        prime.written(1, []),
    ) == ("360 = 2^3 × 3^2 × 5", "7 is prime", "1 = 1")


# ------------------------------------------------------------------ summarise, storyteller,
# slowpoke


def test_a_summary_quotes_the_sentences_that_carry_the_text_in_their_order():
    text = (
        "Glass is made of sand. My aunt called. Hot glass is blown, "
        "and cold glass breaks. It rained! "
        "Sand makes glass hot and cold?"
    )
    picked = summarise.summarise(text, 3)
    assert picked == [
        "Glass is made of sand.",
        "Hot glass is blown, and cold glass breaks.",
        "Sand makes glass hot and cold?",
    ]


def test_a_summary_never_invents():
    rng = random.Random(7)
    said = [
        " ".join(rng.choice(["red", "blue", "sky", "sea", "bird"]) for _ in range(6)) + "."
        for _ in range(30)
    ]
    assert all(s in said for s in summarise.summarise(" ".join(said), 5))


def test_words_and_reading_time_are_counted():
    made = tool(summarise.app, "wordcount")({"text": "One two, two! Don't—stop."}, ME)["data"]
    assert (made["words"], made["unique"], made["sentences"], made["top"][0]) == (
        5,
        4,
        2,
        {"word": "two", "count": 2},
    )
    assert (summarise.reading_time(119), summarise.reading_time(2380)) == ("30 s", "10 min")


def test_a_text_without_a_word_is_refused():
    with pytest.raises(ValueError, match="not a word"):
        tool(summarise.app, "summarise")({"text": "… !"}, ME)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (17, "seventeen"),
        (40, "forty"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (342, "three hundred and forty-two"),
        (1001, "one thousand and one"),
        (-1_000_000, "minus one million"),
        (12_345, "twelve thousand three hundred and forty-five"),
        (2.5, "two point five"),
        (-0.25, "minus zero point two five"),
        (3.0, "three"),
    ],
)
def test_numbers_are_said_in_words(number, words):
    assert storyteller.in_words(number) == words


def test_a_list_is_said_as_one_sentence_for_the_ear_only():
    made = tool(storyteller.app, "tell")({"items": ["a cat", 2, 3.5], "opening": "See:"}, ME)
    assert made["render"] == {
        "audio": {
            "text": "See: a cat, two and three point five. Together that makes five point five."
        }
    }


@pytest.mark.parametrize("items", [[10**15], ["  "]])
def test_what_cannot_be_said_is_refused(items):
    with pytest.raises(ValueError, match=r"too large|nothing to say"):
        storyteller.sentence(items, "See:")


async def test_slowpoke_takes_its_time_and_finds_something_out():
    made = (await tool(slowpoke.app, "ponder")({"seconds": 0.05, "text": "Never odd or even"}, ME))[
        "data"
    ]
    assert made["tookS"] >= 0.05
    assert (made["reversed"], made["vowels"], made["letters"], made["palindrome"]) == (
        "even or odd Never",
        6,
        14,
        True,
    )


# ------------------------------------------------------------------ tasks


def test_tasks_are_really_added_one_by_one_and_per_person(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_ENV, str(tmp_path / "new"))
    assert tool(tasks.app, "list")({}, ME)["data"] == {"tasks": [], "count": 0}
    assert tool(tasks.app, "add")({"title": " buy  milk "}, ME)["data"] == {
        "title": "buy milk",
        "count": 1,
    }
    assert tool(tasks.app, "add")({"title": "buy milk"}, ME)["data"]["count"] == 2
    assert tool(tasks.app, "list")({}, ME)["data"]["tasks"] == ["buy milk", "buy milk"]
    assert tool(tasks.app, "list")({}, CallContext("you"))["data"]["count"] == 0


def test_a_full_list_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_ENV, str(tmp_path))
    monkeypatch.setattr(tasks, "MAX_TASKS", 1)
    tool(tasks.app, "add")({"title": "a"}, ME)
    assert tool(tasks.app, "add")({"title": "b"}, ME)["error"]["code"] == "CONFLICT"


# ------------------------------------------------------------------ photo


def png(width, height, colour, rows, *, palette=b"", depth=8):
    def chunk(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    middle = chunk(b"PLTE", palette) if palette else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + middle
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA"])
def test_a_png_of_another_program_is_decoded_exactly(tmp_path, mode):
    from io import BytesIO

    from PIL import Image

    rng = random.Random(mode)
    picture = Image.new("RGB", (37, 23))
    picture.putdata(
        [
            tuple(min(255, max(0, x * 5 + y * 3 + rng.randrange(40))) for _ in range(3))
            for y in range(23)
            for x in range(37)
        ]
    )
    picture = picture.quantize(64) if mode == "P" else picture.convert(mode)
    out = BytesIO()
    picture.save(out, "PNG")
    decoded = photo.decode(out.getvalue())
    plain = picture.convert("RGB")
    expected = [
        (299 * r + 587 * g + 114 * b) // 1000
        for r, g, b in zip(*[iter(plain.tobytes())] * 3, strict=True)
    ]
    assert (decoded.format, decoded.width, decoded.height) == ("PNG", 37, 23)
    assert list(decoded.luma) == expected


@pytest.mark.parametrize(
    ("data", "luma"),
    [
        (b"P5\n# by hand\n2 2 255\n\x00\x40\x80\xff", [0, 64, 128, 255]),
        (b"P6 1 1 255 \xff\xff\xff", [255]),
    ],
)
def test_pgm_and_ppm_are_decoded(data, luma):
    assert list(photo.decode(data).luma) == luma


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a",
        b"P5",
        b"P5 0 0 255 ",
        b"P5 2 2 255 \x00",
        b"P5 1 1 65535 \x00\x00",
        b"P6 9999 9999 255 ",
        png(100_000, 100_000, 0, b""),
        png(2, 2, 0, b"\x00\x00"),
        png(1, 1, 0, b"\x09\x00"),
        png(1, 1, 3, b"\x00\x05", palette=b"abc"),
        png(1, 1, 0, b"\x00\x00", depth=16),
        png(1, 1, 0, b"\x00\x00")[:-20],
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 40,
    ],
)
def test_a_picture_that_cannot_be_read_is_refused_with_words(data):
    with pytest.raises(ValueError, match="image: "):
        photo.decode(data)


def test_the_histogram_is_of_all_pixels():
    assert photo.histogram(bytes([0, 31, 32, 255])) == [0.5, 0.25, 0, 0, 0, 0, 0, 0.25]


@pytest.mark.parametrize(("level", "mood"), [(10, "dark"), (120, "evenly lit"), (250, "bright")])
def test_the_photo_tool_says_how_bright_it_is(level, mood):
    data = base64.b64encode(png(4, 1, 0, b"\x00" + bytes([level] * 4))).decode()
    made = tool(photo.app, "inspect")({"image": data}, ME)
    assert (made["data"]["mood"], made["data"]["meanBrightness"]) == (mood, level)
    assert f"PNG 4×1, {mood}" in made["render"]["display"]["text"]


def test_what_is_not_base64_is_refused():
    with pytest.raises(ValueError, match="not base64"):
        tool(photo.app, "inspect")({"image": "%%%%"}, ME)


def test_schemas_refuse_what_the_handlers_do_not_expect():
    add = next(
        t
        for a in sample_apps()
        for t in a.tools
        if a.package == "com.example.tasks" and t["name"] == "add"
    )
    assert compile_schema(add["inputSchema"]).errors({"title": "x", "when": 1})
    assert not compile_schema(add["inputSchema"]).errors({"title": "x"})
