"""Sound is measured, not counted; and set to one loudness below full scale."""

import math
from array import array

import pytest
from hypothesis import given, settings, strategies as st

from edge.display.voice import sound
from edge.display.voice.sound import FULL, RATE, heard_after, levelled, mixed, peak_of, resampled


def tone(hertz: float, peak: float, seconds: float = 0.5, rate: int = RATE) -> "array[int]":
    return array(
        "h",
        [
            round(peak * math.sin(2 * math.pi * hertz * n / rate))
            for n in range(int(seconds * rate))
        ],
    )


def decibels(value: float) -> float:
    return 20 * math.log10(value / FULL) if value else -999.0


def rms(samples: "array[int]") -> float:
    return math.sqrt(sum(s * s for s in samples) / len(samples))


@pytest.mark.parametrize("samples", [array("h"), sound.silence(2.0), tone(300, FULL * 0.0041, 2.0)])
def test_silence_and_the_noise_of_an_engine_that_skipped_all_letters_are_not_audible(samples):
    assert not heard_after(samples)


def test_a_short_quiet_word_is_audible():
    assert heard_after(tone(200, FULL * 0.02, 0.1) + sound.silence(3.0))


def test_a_click_is_not_audible_speech():
    assert not heard_after(array("h", [FULL - 1]) + sound.silence(1.0))


def test_loud_and_quiet_engines_end_equally_loud():
    for peak in (FULL * 0.03, FULL * 0.3, FULL - 1):
        level = decibels(rms(levelled(tone(220, peak))))
        assert level == pytest.approx(sound.SPEECH_DB, abs=0.3)


def test_peaks_stay_below_the_ceiling_even_if_the_speech_is_then_quieter():
    spiky = tone(220, FULL * 0.02, 1.0)
    for at in range(0, len(spiky), 1600):
        spiky[at] = FULL - 1
    assert decibels(peak_of(levelled(spiky))) <= -3.0


def test_half_the_volume_is_ten_decibels_less_and_none_is_silence():
    full = rms(levelled(tone(220, 9000)))
    assert decibels(full) - decibels(rms(levelled(tone(220, 9000), 50))) == pytest.approx(10, 0.1)
    assert peak_of(levelled(tone(220, 9000), 0)) == 0


def test_the_lowest_volume_can_be_heard_and_each_step_is_louder():
    square = array("h", [9000 if n % 80 < 40 else -9000 for n in range(8000)])
    for samples in tone(220, 9000), square:
        assert heard_after(levelled(samples, 1))
    gains = [sound.gain(volume) for volume in range(101)]
    assert gains == sorted(set(gains))
    assert (gains[0], gains[100], sound.gain(300)) == (0.0, 1.0, 1.0)


def test_it_is_known_when_the_first_sound_is_heard():
    quiet, word = sound.silence(0.3), tone(200, 9000, 0.5)
    assert heard_after(quiet + word) == pytest.approx(0.36 * RATE, abs=RATE // 50)
    assert heard_after(quiet) == 0
    assert heard_after(word[:960]) == 960


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-FULL, FULL - 1), max_size=900).map(lambda made: array("h", made)),
    st.integers(-5, 120),
)
def test_whatever_is_levelled_keeps_its_length_and_the_ceiling(samples, volume):
    out = levelled(samples, volume)
    assert len(out) == len(samples)
    assert peak_of(out) <= FULL * 10 ** (sound.CEILING_DB / 20) or peak_of(samples) < FULL / 100


@pytest.mark.parametrize("rate", [8000, 22050, 24000, 44100, 48000])
def test_another_rate_keeps_the_length_in_seconds_and_the_voice(rate):
    out = resampled(tone(1000, 12000, 0.4, rate), rate)
    assert len(out) == pytest.approx(0.4 * RATE, abs=2)
    assert decibels(rms(out[800:-800])) == pytest.approx(decibels(12000 / 2**0.5), abs=0.3)


@pytest.mark.parametrize(("rate", "hertz"), [(22050, 10400), (44100, 14000), (48000, 12000)])
def test_what_the_new_rate_cannot_carry_does_not_become_another_tone(rate, hertz):
    out = resampled(tone(hertz, 12000, 0.3, rate), rate)
    assert decibels(rms(out[800:-800])) < -40


def test_two_channels_become_one():
    assert mixed(array("h", [100, 300, -4, -8, 7]), 2) == array("h", [200, -6])


def test_half_a_sample_at_the_end_is_dropped():
    assert sound.from_bytes(b"\x01\x00\x02") == array("h", [1])
