"""Any bytes at Frame and its central: nothing but a violation is raised, and both go on."""

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.frame import wire
from firmware_bridge.codecs.frame.jobs import MAX_JOBS
from firmware_bridge.codecs.frame.picture import PAGE_BYTES, STRIP_BYTES, sprites_of, tile_of
from firmware_bridge.codecs.frame.program import FILE, START, Program, program
from firmware_bridge.errors import CommandRefused, LocalMisuse, LostReason, RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    Done,
    EndPrompt,
    Failed,
    GlassesInfo,
    Ping,
    Prompt,
    SetBrightness,
    SetSilentMode,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
    UpdatePage,
)
from firmware_bridge.pixels import unpack
from tests.codecs.frame.pair import FramePair, drain, equipped

PAGE = ShowPage("s", lines=(TextLine(0, "Hello"), TextLine(3, "there", 20)))
PICTURE = ShowPage("p", tiles=(Tile(2, 3, 24, 9, 4, bytes(range(108))),))
GLASSES_SAY = [
    "01 00",
    "01 01",
    "01 04",
    "01 05 01 02 03 04",
    "01 06",
    "01 07 ff d8 00",
    "01 08 00 00 00 03",
    "01 09",
    "01 0c 32",
    "01 40 32 30 30 30 30 30 30 30 30 76 31",
    "01 41 00 01 00 0a 00 00",
    "31",
    "6e 69 6c",
    "5b 73 74 72 69 6e 67",
]


def greeted(device=None) -> FramePair:
    pair = FramePair(device or equipped())
    assert isinstance(pair.greet(), GlassesInfo)
    return pair


# ------------------------------------------------------------------ what glasses say


def damaged(packet: bytes) -> list[bytes]:
    cut = [packet[:size] for size in range(len(packet))]
    bits = (1, 0x40, 0x80, 0xFF)
    changed = [
        packet[:at] + bytes((packet[at] ^ bit,)) + packet[at + 1 :]
        for at in range(len(packet))
        for bit in bits
    ]
    return [*cut, *changed, packet + packet]


def judge(receive, packets) -> None:
    for packet in packets:
        try:
            receive(packet)
        except RemoteViolation:
            continue


@pytest.mark.parametrize("said", GLASSES_SAY)
def test_a_damaged_packet_of_the_glasses_raises_only_violations(said):
    pair = greeted()
    pair.ask(StartMicrophone(4, AudioFormat.PCM16))
    pair.ask(TakePhoto(5))
    spoiled = damaged(bytes.fromhex(said))
    errors = [packet for packet in spoiled if packet[:7] == b"[string"]
    judge(
        lambda packet: pair.central.receive_packet(packet, pair.now),
        [packet for packet in spoiled if packet not in errors],
    )
    drain(pair.central)
    assert pair.ask(PAGE) == Done(drawn=10)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=40).map(lambda rest: b"\x01" + rest) | st.binary(max_size=30)))
def test_whatever_glasses_say_the_central_goes_on(packets):
    pair = greeted()
    judge(lambda packet: pair.central.receive_packet(packet, pair.now), packets)
    drain(pair.central)
    if not any(packet[:7] == b"[string" for packet in packets):
        assert pair.ask(PAGE) == Done(drawn=10)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.binary(max_size=40).map(lambda rest: b"\x01" + rest) | st.binary(max_size=30)))
def test_whatever_is_said_at_the_start_the_program_is_found(packets):
    pair = FramePair(equipped())
    pair.run(for_s=0.001)
    own = b"\x01\x40"
    noise = [p for p in packets if p[:2] not in (own, b"\x01\x00", b"\x01\x01")]
    judge(lambda packet: pair.central.receive_packet(packet, pair.now), noise)
    assert isinstance(pair.greet(), GlassesInfo)


# ------------------------------------------------------------------ what a central says


def conversation() -> list[bytes]:
    pair = greeted()
    for command in (PAGE, PICTURE, TakePhoto(1), StartMicrophone(4, AudioFormat.PCM16)):
        pair.ask(command)
    return [*pair.said, b"\x03", b"\x04", b"f:close();print(nil)", b"require('glassd_app')"]


@pytest.mark.parametrize("said", conversation(), ids=lambda packet: packet[:8].hex())
def test_a_damaged_packet_of_the_central_raises_only_violations(said):
    pair = greeted()
    for packet in damaged(said):
        judge(lambda packet: pair.glasses.receive_packet(packet, pair.now), [packet])
        pair.now += 0.02
        judge(lambda _: pair.glasses.handle_timer(pair.now), [packet])
        drain(pair.glasses)
    again = FramePair(pair.device, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert again.ask(PAGE) == Done(drawn=10)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=60).map(lambda rest: b"\x01" + rest) | st.binary(max_size=60)))
def test_any_bytes_to_the_glasses_raise_only_violations(packets):
    pair = greeted()
    for packet in packets:
        judge(lambda packet: pair.glasses.receive_packet(packet, pair.now), [packet])
        pair.now += 0.02
        judge(lambda _: pair.glasses.handle_timer(pair.now), [packet])
    again = FramePair(pair.device, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert again.ask(PAGE) == Done(drawn=10)


# ------------------------------------------------------------------ round trips


lines = st.builds(
    TextLine,
    st.integers(0, 5),
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=60).filter(
        lambda text: text.strip(" ")
    ),
    st.integers(0, 639),
)


@st.composite
def tiles(draw):
    bpp = draw(st.sampled_from([1, 2, 4]))
    width, height = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    x, y = draw(st.integers(0, 640 - width)), draw(st.integers(0, 400 - height))
    size = (width * bpp + 7) // 8 * height
    return Tile(x, y, width, height, bpp, draw(st.binary(min_size=size, max_size=size)))


@settings(max_examples=60, deadline=None)
@given(st.lists(lines, max_size=6))
def test_lines_arrive_as_they_were_sent(texts):
    pair = greeted()
    done = pair.ask(ShowPage("s", lines=tuple(texts)))
    assert pair.shown[-1].lines == tuple(texts)
    assert done.drawn == sum(len(line.text) - line.text.count(" ") for line in texts)


@settings(max_examples=60, deadline=None)
@given(tiles())
def test_a_picture_keeps_its_levels(tile):
    pair = greeted()
    done = pair.ask(ShowPage("s", tiles=(tile,)))
    levels = unpack(tile.pixels, tile.width, tile.bpp)
    assert done.drawn == len(levels) - levels.count(0)
    if not any(levels):
        assert pair.shown[-1].tiles == ()
        return
    (drawn,) = pair.shown[-1].tiles
    assert (drawn.x, drawn.y, drawn.width, drawn.height) == (
        tile.x,
        tile.y,
        tile.width,
        tile.height,
    )
    scale = 15 // ((1 << tile.bpp) - 1)
    assert unpack(drawn.pixels, drawn.width, 4) == bytes(level * scale for level in levels)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=300))
def test_any_text_survives_the_prompt(text):
    assert wire.unescape(wire.escape(text)) == text
    pair = greeted()
    pair.device.stop()
    for statement, printed in wire.upload("x.lua", text, 100):
        assert len(statement.encode()) <= 100
        assert pair.device.run(statement) == [printed]
    assert pair.device.files["x.lua"] == text


@given(st.binary(max_size=2000), st.integers(20, 512), st.integers(0, 255))
def test_a_message_survives_its_packets(payload, max_packet, code):
    buffer, whole = wire.MessageBuffer(), None
    for packet in wire.cut(code, payload, max_packet):
        assert whole is None
        assert len(packet) <= max_packet
        whole = buffer.add(packet[1:])
    assert whole == (code, payload)


def test_messages_of_two_codes_may_be_on_their_way():
    buffer = wire.MessageBuffer()
    one, two = (list(wire.cut(code, bytes((code,)) * 40, 24)) for code in (10, 11))
    results = [buffer.add(packet[1:]) for both in zip(one, two, strict=True) for packet in both]
    assert [result for result in results if result] == [(10, b"\x0a" * 40), (11, b"\x0b" * 40)]


# ------------------------------------------------------------------ pictures


def test_a_large_picture_is_cut_into_strips_of_few_bits():
    whole = Tile(0, 0, 640, 400, 4, bytes(range(256)) * 500)
    strips = list(sprites_of([whole], width=640, height=400))
    assert {sprite.bpp for _, _, sprite in strips} == {1}
    assert all(len(sprite.pixels) <= STRIP_BYTES for _, _, sprite in strips)
    tops = [y for _, y, _ in strips]
    assert tops == sorted(set(tops))
    small = list(
        sprites_of([Tile(0, 0, 200, 200, 4, bytes(range(200)) * 100)], width=640, height=400)
    )
    assert {sprite.bpp for _, _, sprite in small} == {4}
    assert sum(len(sprite.pixels) for _, _, sprite in small) <= PAGE_BYTES


@pytest.mark.parametrize("level", range(1, 16))
def test_a_level_that_stands_alone_is_kept(level):
    pixel = Tile(0, 0, 1, 1, 4, bytes([level << 4]))
    ((x, y, sprite),) = sprites_of([pixel], width=640, height=400)
    assert tile_of(x, y, sprite).pixels == bytes([level << 4])


def test_what_is_beyond_the_edge_is_cut_off():
    tile = Tile(636, 398, 8, 4, 1, b"\xff" * 4)
    ((x, y, sprite),) = sprites_of([tile], width=640, height=400)
    assert (x, y, sprite.width, sprite.height, sprite.pixels) == (636, 398, 4, 2, b"\xff")
    assert list(sprites_of([Tile(640, 0, 8, 1, 1, b"\xff")], width=640, height=400)) == []


def test_dark_strips_are_not_sent():
    rows = bytes(80) * 60 + b"\xff" * 80
    ((_, y, sprite),) = sprites_of([Tile(0, 0, 640, 61, 1, rows)], width=640, height=400)
    assert y + sprite.height == 61
    assert y > 0
    assert tile_of(0, y, sprite).height == sprite.height


@pytest.mark.parametrize(
    "payload",
    [
        "00 08 00 01 01 01 02 00 00 00 ff ff ff 55",  # compressed
        "00 08 00 01 00 03 02 00 00 00 ff ff ff 55",  # 3 bits
        "00 08 00 01 00 01 03 00 00 00 ff ff ff 00 00 00 55",  # 3 colours of 1 bit
        "00 00 00 01 00 01 02 00 00 00 ff ff ff",  # no width
        "02 81 00 01 00 01 02 00 00 00 ff ff ff" + "00" * 81,  # too wide
        "00 08 00 02 00 01 02 00 00 00 ff ff ff 55",  # a row is missing
    ],
)
def test_a_sprite_that_cannot_be_is_a_violation(payload):
    with pytest.raises(RemoteViolation):
        wire.read_sprite(bytes.fromhex(payload))


def test_a_sprite_of_the_older_form_has_no_compress_byte():
    old = bytes.fromhex("00 08 00 01 01 02 00 00 00 ff ff ff 55")
    assert wire.read_sprite(old, compress_byte=False).pixels == b"\x55"
    with pytest.raises(RemoteViolation):
        wire.read_sprite(old)


# ------------------------------------------------------------------ order, limits, refusals


def test_a_new_page_replaces_one_that_waits():
    pair = greeted()
    numbers = [
        pair.central.send(ShowPage(name, lines=(TextLine(0, name),)), pair.now)
        for name in ("one", "two", "three")
    ]
    pair.run()
    answers = [pair.answer(number) for number in numbers]
    assert answers[0] == Failed("interrupted", "a newer page replaced it")
    assert answers[1] == Failed("interrupted", "a newer page replaced it")
    assert answers[2] == Done(drawn=5)
    assert [page.lines[0].text for page in pair.shown] == ["three"]


def test_a_page_that_is_being_drawn_is_finished_first():
    pair = greeted()
    first = pair.central.send(PAGE, pair.now)
    pair.run(for_s=0.001)
    second = pair.central.send(PICTURE, pair.now)
    pair.run()
    assert pair.answer(first) == Done(drawn=10)
    assert isinstance(pair.answer(second), Done)


def test_a_page_does_not_wait_for_a_large_picture():
    pair = greeted()
    large = ShowPage("p", tiles=(Tile(0, 0, 640, 400, 1, b"\xff" * 32_000),))
    first = pair.central.send(large, pair.now)
    pair.run(for_s=0.5)
    before = pair.now
    assert pair.ask(PAGE) == Done(drawn=10)
    assert pair.now - before < 1.0
    assert pair.answer(first) == Failed("interrupted", "a newer page replaced it")
    assert pair.shown[-1].lines == PAGE.lines
    assert pair.shown[-1].tiles == (), "what was drawn of the picture is shown and gone"


def test_a_changed_row_sends_the_whole_page():
    pair = greeted()
    pair.ask(PAGE)
    assert pair.ask(UpdatePage("s", 1, (TextLine(3, "here"),))) == Done(drawn=9)
    assert pair.shown[-1].lines == (TextLine(0, "Hello"), TextLine(3, "here"))
    assert pair.ask(UpdatePage("s", 1, (TextLine(0, "Bye"),))) == Done(drawn=7)
    with pytest.raises(CommandRefused, match="no_scene"):
        pair.central.send(UpdatePage("other", 1), pair.now)


def test_what_does_not_fit_is_counted():
    pair = greeted()
    page = ShowPage("s", lines=(TextLine(6, "below"), TextLine(0, "x" * 65), TextLine(1, "fits")))
    assert pair.ask(page) == Done(drawn=65 + 4, clipped=2)
    assert [line.row for line in pair.shown[-1].lines] == [0, 1]


@pytest.mark.parametrize(
    "command",
    [
        Prompt(1, (TextLine(0, "?"),), 5),
        EndPrompt(1),
        StartAudio(1, AudioFormat.PCM16),
        SetSilentMode(on=True),
        SetBrightness(auto=True),
        StartMicrophone(1, AudioFormat.OPUS),
        StartMicrophone(1, AudioFormat.PCM16, 44100),
    ],
)
def test_what_frame_lacks_is_refused(command):
    with pytest.raises(CommandRefused, match="unsupported"):
        greeted().central.send(command, 0.0)


def test_one_stream_and_one_photo_at_a_time():
    pair = greeted()
    pair.ask(StartMicrophone(4, AudioFormat.PCM16))
    pair.ask(TakePhoto(5))
    for command, code in (
        (StartMicrophone(5, AudioFormat.PCM16), "busy"),
        (StopMicrophone(5), "no_stream"),
        (TakePhoto(6), "busy"),
    ):
        with pytest.raises(CommandRefused, match=code):
            pair.central.send(command, pair.now)


def test_a_microphone_that_was_refused_can_be_started_again():
    pair = greeted()
    pair.reply = lambda _command: Failed("unsupported", "no")
    assert isinstance(pair.ask(StartMicrophone(4, AudioFormat.PCM16)), Failed)
    pair.reply = lambda _command: Done()
    assert pair.ask(StartMicrophone(4, AudioFormat.PCM16)) == Done()


def test_commands_without_end_are_refused():
    pair = greeted()
    with pytest.raises(LocalMisuse, match="under way"):
        for _ in range(MAX_JOBS + 1):
            pair.central.send(Ping(), pair.now)


def test_the_battery_is_not_asked_for_while_too_much_waits():
    pair = greeted()
    for _ in range(MAX_JOBS):
        pair.central.send(Ping(), pair.now)
    pair.central.handle_timer(pair.now + 61)
    assert pair.central.next_timer() > pair.now + 61


def test_a_page_that_was_not_shown_is_not_changed_in_parts():
    pair = greeted()
    pair.reply = lambda _command: Failed("busy")
    assert isinstance(pair.ask(PAGE), Failed)
    with pytest.raises(CommandRefused, match="no_scene"):
        pair.central.send(UpdatePage("s", 1, (TextLine(3, "here"),)), pair.now)


def test_a_changed_picture_replaces_the_one_at_its_place():
    pair = greeted()
    assert pair.ask(PICTURE).drawn
    dark = Tile(2, 3, 24, 9, 4, bytes(107) + b"\x0f")
    assert pair.ask(UpdatePage("p", 1, (), (dark,))) == Done(drawn=1)


@pytest.mark.parametrize(
    "text",
    [
        '[string "require"]:1: out of memory',
        "glassd_app.lua:7: out of memory",
        "glassd_app:7: out of memory",
        "main.lua:1: break signal",
    ],
)
def test_a_program_that_ends_ends_the_connection(text):
    pair = greeted()
    pair.tell(text.encode())
    pair.run()
    assert pair.lost.reason is LostReason.PROTOCOL
    assert text in str(pair.lost)


@pytest.mark.parametrize("text", ["Error in photo: glassd_app:7: asleep", "hello", "1", ""])
def test_other_texts_end_nothing(text):
    pair = greeted()
    pair.tell(text.encode() or b" ")
    pair.run()
    assert pair.ask(PAGE) == Done(drawn=10)


@pytest.mark.parametrize(
    "text",
    [
        "module 'glassd_app' not found:\n\tno field package.preload['glassd_app']",
        "error loading module 'glassd_app' from file 'glassd_app.lua':\n\tglassd_app.lua:1: near",
    ],
)
def test_a_module_that_cannot_be_loaded_is_uploaded_without_a_pause(text):
    pair = FramePair()
    error = pair.device.error
    pair.device.error = lambda where, what: text if "require" in where else error(where, what)
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.now < 104.5


def test_a_late_break_is_no_reason_to_upload():
    device = equipped()
    device.stop()
    pair = FramePair(device)
    pair.run(until=lambda: START.encode() in pair.said, for_s=10)
    pair.tell(b'[string "other"]:1: break signal')
    assert isinstance(pair.greet(), GlassesInfo)
    assert not pair.central.startup.uploaded


def test_a_file_stored_in_part_is_uploaded_again():
    device = equipped()
    device.stop()
    device.files[FILE] = program().text[:2000]
    pair = greeted(device)
    assert pair.central.startup.uploaded
    assert device.files[FILE] == program().text


def test_another_program_than_was_uploaded_ends_the_connection():
    pair = FramePair(app=Program(program().text, "00000000"))
    pair.run(for_s=60)
    assert pair.lost.reason is LostReason.PROTOCOL
    assert f"was uploaded: {program().build}" in str(pair.lost)
    assert pair.device.uploads == 1


def test_glasses_without_space_end_the_connection():
    pair = FramePair()
    pair.device.files = {f"{number}.lua": "" for number in range(32)}
    pair.central.send(Ping(), pair.now)
    pair.run(for_s=30)
    assert pair.lost.reason is LostReason.PROTOCOL
    assert "no space left" in str(pair.lost)


def test_silent_glasses_end_the_connection():
    pair = FramePair(air=lambda way, packet: [] if way == "up" else [packet])
    pair.run(for_s=60)
    assert pair.lost.reason is LostReason.SILENT
