"""Where utterances begin and end. A character is 32 ms: `#` speech, `.` silence, `~` a soft end."""

import pytest

from edge.hearing.utterances import LONGEST_S, Utterances
from edge.hearing.voice_activity import WINDOW_BYTES, WINDOW_S

PROBABILITY = {".": 0.1, "~": 0.4, "#": 0.9}


def sound(picture: str) -> bytes:
    return b"".join(character.encode() * WINDOW_BYTES for character in picture)


def hear(
    picture: str, *, end: bool = False, commands: bool = True
) -> list[tuple[str, str, float, float]]:
    """What changed: began or ended, the sound of the utterance, its times in windows."""
    utterances = Utterances(lambda window: PROBABILITY[chr(window[0])])
    utterances.expect(commands=commands)
    found, pcm = [], sound(picture)
    for at in range(0, len(pcm), 3200):  # chunks of 100 ms are no multiple of windows
        part = pcm[at : at + 3200]
        found += [_note(c, u) for c, u in utterances.hear(part, (at + len(part)) / 32000)]
    if end:
        found += [_note(c, u) for c, u in utterances.end()]
    return found


def _note(change, utterance):
    windows = bytes(utterance.sound[::WINDOW_BYTES]).decode()
    times = (round(at / WINDOW_S, 3) for at in (utterance.began_at, utterance.ended_at))
    return (change.name, windows, *times)


def test_an_utterance_has_the_sound_before_its_first_word_and_the_pause_after_it():
    began, ended = hear("." * 30 + "#" * 20 + "." * 30)
    assert began == ("BEGAN", "." * 10 + "#" * 4, 30, 34)
    assert ended[0] == "ENDED"
    assert ended[1] == "." * 10 + "#" * 20 + "." * 19, "300 ms before, 600 ms after"
    assert ended[2:] == (30, 50)


def test_a_click_is_no_speech():
    assert hear("...#...##...###...#.#.#....") == []


def test_a_hole_in_the_first_word_does_not_hide_it():
    assert [change[0] for change in hear("....##.##" + "." * 30)] == ["BEGAN", "ENDED"]


def test_pauses_within_a_sentence_and_soft_ends_do_not_end_it():
    (_, _, *_), ended = hear("......####" + "." * 17 + "####~~~~~~" + "." * 17 + "#" + "." * 20)
    assert ended[1].count("#") == 9


def test_two_sentences_are_two_utterances():
    assert [c[0] for c in hear(("#" * 10 + "." * 25) * 2)] == ["BEGAN", "ENDED"] * 2


def test_the_end_of_the_sound_ends_the_utterance():
    assert [c[0] for c in hear("......######", end=True)] == ["BEGAN", "ENDED"]
    assert hear("............", end=True) == []


def test_speech_without_a_pause_is_cut_at_its_longest_and_goes_on():
    windows = round(LONGEST_S / WINDOW_S)
    found = hear("#" * (windows + 300) + "." * 20)
    assert [c[0] for c in found] == ["BEGAN", "ENDED", "ENDED"]
    assert sum(c[1].count("#") for c in found[1:]) == windows + 300, "no sound is lost at the cut"
    assert found[1][3] == pytest.approx(found[2][2]), "the second begins where the first ended"


@pytest.mark.parametrize(("commands", "seconds"), [(True, 15), (False, 5)])
def test_long_speech_is_cut_at_a_short_pause(commands, seconds):
    found = hear(("#" * 40 + "." * 9) * 20, commands=commands)
    assert [c[0] for c in found][:3] == ["BEGAN", "ENDED", "BEGAN"]
    assert seconds <= len(found[1][1]) * WINDOW_S <= seconds + 2.5
