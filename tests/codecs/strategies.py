"""Every message the reference profile can carry, as hypothesis strategies. Knows the profile's
bounds, no bytes.
"""

from hypothesis import strategies as st

from firmware_bridge.messages import (
    Answer,
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    CapabilitiesChanged,
    ClearPage,
    Done,
    EndAudio,
    EndPrompt,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    PhotoFailed,
    PhotoSize,
    Ping,
    Prompt,
    PromptAnswered,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
    Transcript,
    UpdatePage,
    WornChanged,
)
from firmware_bridge.sides import Side

u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
pages = st.integers(1, 0xFFFF)
names = st.text(st.characters(codec="utf-8"), max_size=32)
lines = st.lists(
    st.builds(
        TextLine,
        st.integers(0, 31),
        st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40),
        st.integers(0, 4095),
    ),
    max_size=6,
).map(tuple)
facts = st.dictionaries(
    names,
    st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    max_size=8,
)
limits = st.dictionaries(st.sampled_from(["window", "message", "tiles", "other"]), u32, max_size=4)
chunks = st.lists(st.binary(max_size=60), max_size=8).map(tuple)


@st.composite
def tile(draw):
    width, height, bpp = (
        draw(st.integers(1, 40)),
        draw(st.integers(1, 12)),
        draw(st.sampled_from([1, 2, 4])),
    )
    size = (width * bpp + 7) // 8 * height
    noise = st.binary(min_size=size, max_size=size)
    flat = st.integers(0, 255).map(lambda value: bytes([value]) * size)
    return Tile(
        draw(st.integers(0, 4095)),
        draw(st.integers(0, 4095)),
        width,
        height,
        bpp,
        draw(noise | flat),
    )


tiles = st.lists(tile(), max_size=4).map(tuple)
show = st.builds(
    lambda scene, page, more, shown, drawn: ShowPage(
        scene, page, min(page + more, 0xFFFF), shown, drawn
    ),
    names,
    pages,
    st.integers(0, 9),
    lines,
    tiles,
)

answered_commands = st.one_of(
    st.builds(Hello, names, names),
    show,
    st.builds(UpdatePage, names, pages, lines, tiles),
    st.just(ClearPage()),
    st.builds(
        StartAudio, u16, st.sampled_from(AudioFormat), st.integers(8000, 48000), st.integers(1, 120)
    ),
    st.builds(EndAudio, u16, st.booleans()),
    st.builds(StartMicrophone, u16, st.sampled_from(AudioFormat), st.integers(8000, 48000)),
    st.builds(StopMicrophone, u16),
    st.builds(Prompt, u32, lines, st.floats(0.001, 600)),
    st.builds(EndPrompt, st.none() | u32),
    st.builds(TakePhoto, u32, st.sampled_from(PhotoSize)),
    st.just(Ping()),
)
commands = answered_commands | st.builds(AudioChunk, u16, u32, chunks)
replies = st.one_of(
    st.builds(GlassesInfo, names, names, names, facts, limits),
    st.builds(Done, st.none() | u32, st.none() | u32, u32),
    st.builds(Failed, names, names),
)
events = st.one_of(
    st.builds(Gestured, st.sampled_from(Gesture), st.none() | st.sampled_from(Side)),
    st.builds(BatteryChanged, st.integers(0, 100), st.booleans()),
    st.builds(WornChanged, st.booleans()),
    st.builds(Transcript, st.text(st.characters(codec="utf-8"), max_size=200), st.booleans()),
    st.builds(MicrophoneChunk, u16, u32, chunks),
    st.builds(PhotoFailed, u32, names),
    st.builds(PromptAnswered, u32, st.sampled_from(Answer)),
    st.builds(CapabilitiesChanged, facts),
)
