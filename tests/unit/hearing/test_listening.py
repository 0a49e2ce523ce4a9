"""When the microphone is on, for what, who gets the words, and when it is off again."""

import pytest

from edge.core.hearing.purposes import Purpose
from edge.hearing import listening, obstacles
from edge.hearing.journal import ListeningJournal
from edge.listening_ports import CannotListen
from edge.runtime.clock import Clock
from edge.runtime.events import ToolsListChanged
from firmware_bridge.messages import (
    AudioFormat,
    Gesture,
    MicrophoneChunk,
    Reading,
    StartMicrophone,
    Transcript,
)
from tests.unit.hearing.listening_place import G1, Place

PCM = {**G1, "microphone.codecs": "pcm16", "gestures": "tap,double_tap"}


# ------------------------------------------------------------------ push to talk


@pytest.mark.requirement("I14-push-to-talk")
async def test_push_to_talk_hears_one_sentence_and_is_off():
    async with Place().running() as place:
        assert not place.on
        await place.press()
        assert place.on
        assert place.glasses.asked == [StartMicrophone(1, AudioFormat.LC3)]
        assert place.mark.seen == [""]
        place.glasses.sound()
        assert len(place.stream.chunks) == 1
        await place.hear("set a", final=False)
        await place.hear("set a timer")
        assert not place.on
        assert place.stream.closed
        assert place.mark.seen == ["", "set a", None]
        assert place.mark.answered, "the lens waits for the answer"
        assert place.said == [
            ("glasses.event", "GlassesSaid", Transcript("set a", final=False, addressed=True)),
            ("glasses.event", "GlassesSaid", Transcript("set a timer", addressed=True)),
        ]
        assert place.stage.told == []


@pytest.mark.requirement("I14-push-to-talk")
async def test_a_second_gesture_stops_push_to_talk_and_drops_what_was_said():
    async with Place().running() as place:
        await place.press()
        place.stream.last_words = "delete all"
        await place.press()
        assert not place.on
        assert not place.mark.answered
        assert place.texts == []
        await place.press()
        assert place.on, "a third one begins again"


@pytest.mark.parametrize(
    ("silent_s", "speaking_s", "over"),
    [(9, 0, False), (11, 0, True), (9, 18, False), (9, 22, True)],
)
@pytest.mark.requirement("I14-push-to-talk")
async def test_push_to_talk_ends_after_silence_and_after_half_a_minute(silent_s, speaking_s, over):
    async with Place().running() as place:
        await place.press()
        place.stream.last_words = "so far" if speaking_s else None
        await place.pass_time(silent_s)
        for _ in range(0, speaking_s, 2):
            place.glasses.sound()
            await place.hear("well", final=False)
            await place.pass_time(2)
        assert place.on is not over
        assert place.texts[-1:] == (["so far"] if over and speaking_s else place.texts[-1:])
        if over and speaking_s:
            assert place.said[-1][2].addressed


@pytest.mark.requirement("I14-button-released")
@pytest.mark.parametrize(
    ("held_s", "speaks", "over"), [(2.0, True, True), (2.0, False, False), (1.0, True, False)]
)
async def test_letting_go_ends_a_sentence_that_was_held(held_s, speaks, over):
    async with Place().running() as place:
        await place.press()
        place.stream.last_words = "buy milk"
        await place.pass_time(held_s / 2)
        if speaks:
            await place.hear("buy", final=False)
        await place.pass_time(held_s / 2)
        await place.let_go()
        assert place.on, "the last sound is still coming"
        await place.pass_time(0.5)
        assert place.on is not over
        assert ("buy milk" in place.texts) is over


async def test_a_press_that_begins_again_is_not_ended_by_the_one_before():
    async with Place().running() as place:
        await place.press()
        await place.pass_time(1)
        await place.hear("buy", final=False)
        await place.pass_time(1)
        await place.let_go()
        await place.press()
        assert not place.on
        await place.press()
        await place.pass_time(1)
        assert place.on


async def test_a_recognised_nothing_is_not_the_end():
    async with Place().running() as place:
        await place.press()
        await place.hear("  ")
        assert place.on
        assert place.texts == []


@pytest.mark.parametrize(
    ("facts", "configured", "gesture", "listens"),
    [
        (G1, "auto", Gesture.BUTTON_LONG, True),
        (G1, "auto", Gesture.DOUBLE_TAP, False),
        (PCM, "auto", Gesture.DOUBLE_TAP, True),
        (PCM, "nod", Gesture.NOD, True),
        (PCM, "nod", Gesture.DOUBLE_TAP, False),
        (G1, "off", Gesture.BUTTON_LONG, False),
        ({**G1, "gestures": "tap"}, "auto", Gesture.TAP, False),
        ({**G1, "microphone": False}, "auto", Gesture.BUTTON_LONG, False),
    ],
)
@pytest.mark.requirement("I14-push-to-talk")
async def test_the_gesture_is_the_one_configured_else_what_the_glasses_have(
    facts, configured, gesture, listens
):
    async with Place(facts, push_to_talk=configured).running() as place:
        await place.press(gesture)
        assert place.on is listens


@pytest.mark.parametrize(
    ("facts", "form", "rate"),
    [
        ({"microphone.codecs": "mulaw", "microphone.rate": 8000}, AudioFormat.MULAW, 8000),
        ({"microphone.codecs": "pcm16", "microphone.rate": 44100}, AudioFormat.PCM16, 16000),
        ({"microphone.codecs": "opus"}, AudioFormat.OPUS, 16000),
    ],
)
async def test_sound_is_asked_for_and_recognised_in_the_format_and_rate_of_the_glasses(
    facts, form, rate
):
    async with Place({**PCM, **facts}).running() as place:
        await place.press(Gesture.DOUBLE_TAP)
        assert place.glasses.asked == [StartMicrophone(1, form, rate)]
        assert (place.stream.form, place.recognition.rate) == (form, rate)


async def test_our_own_speech_stops_at_push_to_talk():
    async with Place().running() as place:
        place.speech.speaking = True
        await place.press()
        assert place.speech.stopped == 1


# ------------------------------------------------------------------ a voice session


@pytest.mark.requirement("I14-session")
async def test_a_started_voice_session_is_listened_to_until_its_end():
    async with Place().running() as place:
        place.session.begin_voice(place.time())
        await place.settle()
        assert not place.on, "a session that a spoken call began needs no microphone"
        place.session.apply({"type": "END_VOICE_SESSION"}, tool="t", now=place.time())
        await place.start_session()
        assert place.on
        await place.hear("one")
        await place.hear("two")
        assert place.on
        assert [said.addressed for _, _, said in place.said] == [False, False]
        place.session.apply({"type": "END_VOICE_SESSION"}, tool="t", now=place.time())
        await place.settle()
        assert not place.on


@pytest.mark.requirement("I14-session")
async def test_a_gesture_ends_the_listening_of_a_session_for_good():
    async with Place().running() as place:
        await place.start_session()
        await place.press()
        assert not place.on
        place.session.begin_voice(place.time())
        await place.settle()
        assert not place.on, "the same session is not listened to again"
        await place.press()
        assert place.on, "but push to talk works in it"


@pytest.mark.requirement("I14-session")
async def test_a_silent_session_is_over_after_its_idle_time():
    async with Place().running() as place:
        await place.start_session()
        for _ in range(62):
            place.glasses.sound()
            await place.pass_time(4.9)
        assert not place.on
        place.session.begin_voice(place.time())
        await place.settle()
        assert not place.on


# ------------------------------------------------------------------ questions


@pytest.mark.requirement("I14-question")
async def test_words_to_a_question_go_to_the_question_only():
    async with Place().running() as place:
        assert place.listening.opened(place.question(by_voice=True))
        await place.settle()
        assert place.on
        assert place.stream.expected[0].sentences == ("question",)
        await place.hear("ye", final=False)
        await place.hear("yes")
        assert place.answers == [Transcript("yes")]
        assert place.said == []
        place.listening.closed()
        await place.settle()
        assert not place.on


@pytest.mark.requirement("I14-question")
async def test_a_question_without_a_spoken_yes_uses_only_a_microphone_that_is_on():
    async with Place().running() as place:
        assert not place.listening.opened(place.question())
        await place.settle()
        assert not place.on
        await place.start_session()
        assert place.on
        assert place.listening.opened(place.question())
        await place.settle()
        await place.hear("no")
        assert place.answers == [Transcript("no")]
        place.listening.closed()
        await place.settle()
        await place.hear("what time is it")
        assert place.texts == ["what time is it"]


# ------------------------------------------------------------------ names


async def test_names_are_read_before_commands_are_listened_for():
    async with Place().running() as place:
        await place.press()
        assert place.names_read == [0]
        await place.press()
        await place.press()
        assert place.names_read == [0, 1]


async def test_names_are_read_before_the_wake_phrase_is_listened_for():
    async with Place(wake_phrase="hello glasses").running() as place:
        assert place.names_read == [0]


async def test_for_captions_and_questions_no_names_are_read():
    async with Place().running() as place:
        place.listening.opened(place.question(by_voice=True))
        await place.settle()
        assert len(place.recognition.streams) == 1
        place.listening.closed()
        await place.listening.switch(on=True)
        assert len(place.recognition.streams) == 2
        assert place.names_read == []


# ------------------------------------------------------------------ captions


@pytest.mark.requirement("I14-captions-private")
async def test_words_for_captions_are_in_no_event():
    async with Place().running() as place:
        await place.listening.switch(on=True)
        assert place.on
        await place.hear("good mor", final=False)
        await place.hear("good morning")
        assert [said.text for said in place.captions.heard] == ["good mor", "good morning"]
        assert place.said == []
        await place.listening.switch(on=False)
        await place.settle()
        assert not place.on
        assert place.captions.ends == [""]


@pytest.mark.requirement("I14-captions-private")
async def test_captions_take_the_words_of_a_session_but_not_of_push_to_talk():
    async with Place().running() as place:
        await place.start_session()
        await place.listening.switch(on=True)
        await place.settle()
        await place.hear("said by others")
        assert place.said == []
        place.listening._close(listening.Purpose.SESSION)
        await place.press()
        await place.hear("captions off")
        assert place.texts == ["captions off"]
        assert place.on, "the captions go on"
        assert len(place.captions.heard) == 1


async def test_captions_that_the_wearer_leaves_turn_the_microphone_off():
    async with Place().running() as place:
        await place.listening.switch(on=True)
        place.captions.left()
        await place.settle()
        assert not place.on
        assert place.captions.ends == [""]


@pytest.mark.requirement("I14-one-plain-line")
async def test_captions_say_why_they_do_not_come():
    async with Place().running() as place:
        place.captions.missing = "These glasses have no display."
        with pytest.raises(CannotListen, match="no display"):
            await place.listening.switch(on=True)
        place.captions.missing = ""
        place.glasses.refuse = ["unsupported"]
        with pytest.raises(CannotListen, match="does not go on"):
            await place.listening.switch(on=True)
        assert place.captions.ends == ["The microphone of the glasses does not go on."]
        assert place.stage.told == [], "the caller gets the reason, and the lens says nothing"


# ------------------------------------------------------------------ the wake phrase


@pytest.mark.requirement("I14-wake")
async def test_only_what_follows_the_wake_phrase_counts():
    async with Place(wake_phrase="hello glasses").running() as place:
        assert place.on
        await place.hear("what time is it")
        await place.hear("hello there")
        assert place.said == []
        assert place.mark.seen == []
        await place.hear("Hello, glasses! What time is it?")
        assert place.said[0][2] == Transcript("What time is it?", addressed=True)
        await place.hear("and now")
        assert len(place.said) == 1


@pytest.mark.requirement("I14-wake")
async def test_after_the_phrase_alone_the_next_sentence_counts_for_six_seconds():
    async with Place(wake_phrase="hello glasses").running() as place:
        await place.hear("hello glasses")
        assert place.mark.seen == [""]
        await place.pass_time(5)
        await place.hear("set a timer", began_at=place.time())
        assert place.texts == ["set a timer"]
        assert place.mark.seen[-1] is None
        assert place.mark.answered
        await place.hear("hello glasses")
        await place.pass_time(7)
        assert place.mark.seen[-1] is None
        await place.hear("delete it", began_at=place.time())
        assert place.texts == ["set a timer"]


async def test_a_reading_with_the_phrase_counts_if_it_is_nearly_the_likeliest():
    readings = (Reading("hello classes call", -1.0), Reading("hello glasses call", -1.9))
    async with Place(wake_phrase="hello glasses").running() as place:
        await place.hear("hello classes call", readings=readings)
        assert place.said[0][2].readings == (Reading("call", -1.9),)
        far = (readings[0], Reading("hello glasses call", -9.0))
        await place.hear("hello classes call", readings=far)
        assert len(place.said) == 1


@pytest.mark.requirement("I14-wake")
async def test_unworn_glasses_do_not_wait_for_the_phrase():
    place = Place(wake_phrase="hello glasses")
    place.glasses.worn = False
    async with place.running():
        assert not place.on


# ------------------------------------------------------------------ a lost link


@pytest.mark.requirement("I14-microphone-stays-off")
async def test_push_to_talk_does_not_outlive_the_link_and_gives_the_words_so_far():
    async with Place().running() as place:
        await place.press()
        place.stream.last_words = "remind me"
        await place.lose()
        assert place.texts == ["remind me"]
        await place.return_()
        assert not place.on


@pytest.mark.parametrize(("away_s", "on"), [(50, True), (70, False)])
@pytest.mark.requirement("I14-microphone-stays-off")
async def test_a_session_and_captions_go_on_if_the_glasses_are_back_within_a_minute(away_s, on):
    async with Place().running() as place:
        await place.start_session()
        await place.listening.switch(on=True)
        await place.lose()
        await place.pass_time(away_s)
        await place.return_()
        assert place.on is on
        assert place.captions.ends == ([] if on else ["The glasses are not connected."])


async def test_glasses_back_before_the_loss_was_noticed_are_listened_to_again():
    async with Place().running() as place:
        await place.start_session()
        place.glasses.open = None
        place.bus.publish(listening.GlassesLost("gone"))
        place.bus.publish(listening.GlassesReady("test", "1", "a", 247, "memory"))
        await place.settle()
        assert place.on
        assert len(place.recognition.streams) == 2


# ------------------------------------------------------------------ what can go wrong


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"allow": False}, obstacles.FORBIDDEN),
        ({"missing": "pip install it"}, obstacles.NO_RECOGNISER),
        ({"refuse": "unsupported"}, "The microphone of the glasses does not go on."),
        ({"fails": "no memory"}, obstacles.STOPPED),
        ({"fails": "no route", "recogniser": "tcp://box:1"}, obstacles.NO_SERVER),
    ],
)
@pytest.mark.requirement("I14-one-plain-line")
async def test_the_wearer_reads_one_line_if_nothing_can_be_heard(change, line):
    keys = {"allow", "recogniser"}
    place = Place(**{key: value for key, value in change.items() if key in keys})
    place.recognition.missing = change.get("missing", "")
    place.recognition.fails = change.get("fails", "")
    place.glasses.refuse = [change["refuse"]] if "refuse" in change else []
    async with place.running():
        await place.press()
        assert place.stage.told == [line]
        assert not place.on


async def test_a_double_tap_that_is_push_to_talk_by_itself_says_nothing_without_a_recogniser():
    place = Place(PCM)
    place.recognition.missing = "pip install it"
    async with place.running():
        await place.press(Gesture.DOUBLE_TAP)
        assert place.stage.told == []


@pytest.mark.requirement("I14-one-plain-line")
async def test_a_recogniser_that_dies_in_mid_sentence_ends_the_listening_with_a_line():
    async with Place().running() as place:
        await place.start_session()
        await place.hear("set a", final=False)
        await place.fail("killed")
        assert not place.on
        assert place.stage.told == [obstacles.STOPPED]
        assert place.mark.seen[-1] is None
        await place.pass_time(400)
        assert not place.on
        assert place.audit[-1]["reason"].endswith(obstacles.STOPPED)


async def test_the_wake_phrase_is_waited_for_again_after_a_rest():
    async with Place(wake_phrase="hello glasses").running() as place:
        await place.fail("killed")
        assert not place.on
        assert place.stage.told == [], "nobody asked for anything"
        await place.pass_time(6)
        assert place.on
        await place.fail("killed")
        await place.pass_time(6)
        assert not place.on
        await place.pass_time(25)
        assert place.on


async def test_a_microphone_that_sends_nothing_is_turned_off_with_a_line():
    async with Place().running() as place:
        await place.start_session()
        await place.pass_time(9)
        assert place.on
        place.glasses.sound()
        await place.pass_time(11)
        assert not place.on
        assert place.stage.told == [obstacles.NO_SOUND]


async def test_a_stream_left_open_on_the_glasses_is_closed_first():
    async with Place().running() as place:
        place.glasses.refuse = ["busy"]
        await place.press()
        assert place.on
        assert [type(each).__name__ for each in place.glasses.asked] == [
            "StartMicrophone",
            "StopMicrophone",
            "StartMicrophone",
        ]


@pytest.mark.requirement("I14-microphone-forbidden")
async def test_a_microphone_that_is_forbidden_while_it_is_on_goes_off():
    async with Place(wake_phrase="hello glasses").running() as place:
        await place.start_session()
        await place.configure(allow=False)
        assert not place.on
        assert place.stage.told == [obstacles.FORBIDDEN]
        await place.pass_time(400)
        await place.start_session("voice-2")
        assert not place.on


# ------------------------------------------------------------------ half duplex


@pytest.mark.requirement("I14-own-voice")
async def test_our_own_speech_is_not_heard_unless_the_glasses_cancel_it():
    async with Place().running() as place:
        await place.start_session()
        place.speech.speaking = True
        place.glasses.sound(0)
        assert place.stream.chunks == []
        place.speech.speaking = False
        place.glasses.sound(1)
        assert [chunk.index for chunk in place.stream.chunks] == [1]
        place.glasses.facts = {**G1, "microphone.echo_cancelling": True}
        place.speech.speaking = True
        place.glasses.sound(2)
        assert [chunk.index for chunk in place.stream.chunks] == [1, 2]
        place.stream.words.put_nowait(listening.SpeechBegan(place.time()))
        await place.settle()
        assert place.speech.stopped == 1


@pytest.mark.requirement("I14-own-voice")
async def test_what_others_say_does_not_stop_our_speech():
    facts = {**G1, "microphone.echo_cancelling": True}
    async with Place(facts, wake_phrase="hello glasses").running() as place:
        place.speech.speaking = True
        place.stream.words.put_nowait(listening.SpeechBegan(place.time()))
        await place.settle()
        assert place.speech.stopped == 0


async def test_sound_of_an_earlier_stream_is_not_used():
    async with Place().running() as place:
        await place.press()
        late = place.glasses.open
        await place.press()
        await place.press()
        place.glasses.take(MicrophoneChunk(late, 0, (b"x",)))
        assert place.stream.chunks == []


# ------------------------------------------------------------------ what others see


@pytest.mark.requirement("I14-who-listened")
def test_the_audit_log_names_each_purpose_once():
    lines = []
    journal = ListeningJournal(Clock(boot=lambda: 5.0), lines.append)
    journal.serve([Purpose.PUSH_TO_TALK])
    journal.serve([Purpose.CAPTIONS, Purpose.PUSH_TO_TALK])
    journal.off(2, "")
    assert lines[-1]["reason"] == "push_to_talk, captions; 0.0 s, 2 sentences"


@pytest.mark.requirement("I14-who-listened")
async def test_status_and_audit_say_who_listened_how_long_and_never_the_words():
    async with Place().running() as place:
        assert place.listening.describe() == {
            "state": "off",
            "for": "",
            "recogniser": "auto",
            "reason": "",
            "since_s": None,
            "last": None,
        }
        await place.press()
        place.time.now += 2
        now = place.listening.describe()
        assert (now["state"], now["for"], now["since_s"]) == ("listening", "push_to_talk", 2.0)
        await place.hear("my secret")
        last = {"for": "push_to_talk", "on_s": 2.0, "sentences": 1, "reason": "", "ago_s": 0}
        assert place.listening.describe()["last"] == last
    assert place.audit == [
        {"outcome": "microphone_on", "reason": "push_to_talk"},
        {
            "outcome": "microphone_off",
            "reason": "push_to_talk; 2.0 s, 1 sentence",
            "duration": 2000,
        },
    ]


@pytest.mark.parametrize(
    ("facts", "settings", "missing", "state"),
    [
        (G1, {"allow": False}, "", "forbidden"),
        ({"display": True}, {}, "", "missing"),
        (G1, {}, "install it", "missing"),
    ],
)
async def test_status_says_why_nothing_can_be_heard(facts, settings, missing, state):
    place = Place(facts, **settings)
    place.recognition.missing = missing
    said = place.listening.describe()
    assert said["state"] == state
    assert said["reason"]


@pytest.mark.requirement("I14-lc3")
async def test_glasses_whose_sound_cannot_be_decoded_are_not_listened_to(missing_codec):
    missing_codec.append("the sound codec LC3 is not installed: apt-get install liblc3-0")
    async with Place().running() as place:
        await place.press()
        assert not place.on
        assert place.stage.told == [obstacles.NO_CODEC]
        said = place.listening.describe()
        assert (said["state"], said["reason"]) == ("missing", missing_codec[0])
    async with Place(PCM).running() as place:
        assert place.listening.describe()["state"] == "off", "other sound needs no such codec"


async def test_suppressed_words_are_acted_on_and_in_no_event():
    async with Place().running() as place:
        place.suppressed = True
        await place.press()
        await place.hear("my secret")
        assert [kind for _, kind, _ in place.said] == ["PrivateWords"]


async def test_what_may_be_said_follows_the_tools():
    async with Place().running() as place:
        await place.start_session()
        place.bus.publish(ToolsListChanged("1", 1))
        await place.settle()
        assert len(place.stream.expected) == 2


async def test_a_daemon_that_stops_turns_the_microphone_off():
    place = Place()
    async with place.running():
        await place.press()
        assert place.on
    assert not place.on


async def test_the_choices_of_the_next_question_may_be_said():
    async with Place().running() as place:
        place.listening.opened(place.question(by_voice=True, choices=("Oslo",)))
        await place.settle()
        place.listening.opened(place.question(by_voice=True, choices=("Bergen",)))
        said = [expected.sentences for expected in place.stream.expected]
        assert said == [("question", "Oslo"), ("question", "Bergen")]


@pytest.mark.requirement("I14-session")
async def test_a_session_can_be_started_after_the_wearer_said_something():
    async with Place().running() as place:
        place.session.begin_voice(place.time())
        await place.start_session()
        assert place.on


@pytest.mark.requirement("I14-microphone-stays-off")
async def test_push_to_talk_is_over_with_its_link_also_if_the_glasses_are_back_at_once():
    async with Place().running() as place:
        await place.press()
        place.glasses.open = None
        place.bus.publish(listening.GlassesLost("gone"))
        place.bus.publish(listening.GlassesReady("test", "1", "a", 247, "memory"))
        await place.settle()
        assert not place.on


@pytest.mark.requirement("I14-session")
async def test_in_a_voice_session_no_wake_phrase_is_needed():
    async with Place(wake_phrase="hello glasses").running() as place:
        await place.start_session()
        await place.hear("what time is it")
        assert place.texts == ["what time is it"]
        await place.listening.switch(on=True)
        await place.settle()
        await place.hear("said by others")
        await place.hear("hello glasses stop")
        assert place.texts == ["what time is it", "stop"], "with captions it is"
