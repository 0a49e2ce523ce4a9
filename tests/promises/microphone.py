"""Promises about the microphone: its sound on the air, and simulated ones."""

from typing import Final

from tests.promises.words import Promise

_WHERE: Final = "issue 14, From bytes to words"
PROMISES: Final[dict[str, Promise]] = {
    "I14-lc3": Promise(
        "LC3 is read and written by the system's liblc3; where it is missing, one sentence names "
        "the package.",
        _WHERE,
    ),
    "I14-wyoming": Promise(
        "A Wyoming server recognises any language it offers; one that is away, or goes in the "
        "middle of a sentence, is said in one line.",
        _WHERE,
    ),
    "I14-sherpa": Promise(
        "sherpa-onnx runs the model in a configured folder; of a folder without a known kind it is "
        "said what is missing.",
        _WHERE,
    ),
    "I14-damaged-sound": Promise(
        "Sound that comes late, twice, with gaps or not any more gives shorter words, never a "
        "wait without end.",
        _WHERE,
    ),
    "I14-recogniser-breaks": Promise(
        "A recogniser that ends, is killed, is stuck or writes nonsense is one plain line; the "
        "next listening starts another one.",
        "issue 14, Shows 3",
    ),
    "I14-recogniser-ends": Promise(
        "The recogniser is a process that ends a minute after the last listening, time asleep "
        "included, and with the daemon, even a killed one.",
        "issue 14, Shows 4",
    ),
    "I14-recogniser-memory": Promise(
        "The recogniser's process takes less than 230 MiB, after ten minutes no more than after "
        "one.",
        "issue 14, Shows 3",
    ),
    "I14-no-sound-in-events": Promise(
        "The sound of the microphone is in no event, on no socket and in no topic.",
        "issue 14, When it listens",
    ),
    "I14-microphone-stays-off": Promise(
        "A microphone is not opened again by the link: only what listens decides that.",
        "issue 14, When it listens",
    ),
    "I14-sound-gaps": Promise(
        "Sound that a G1 lost on the way leaves a gap in the numbers of its chunks, as long as "
        "what was lost, also over the end of its numbers and a new recording.",
        _WHERE,
    ),
    "I14-microphone-arm": Promise(
        "Where one arm of a G1 refuses to open its microphone, the other one's is opened.",
        _WHERE,
    ),
    "I14-sim-microphone": Promise(
        "The simulated microphone hears WAV files and samples; the simulated G1 sends them as "
        "real LC3, recordings of 30 s at most.",
        _WHERE,
    ),
    "I14-hear": Promise(
        "App developers test by voice: `glassd hear` and `glassd_mock` play a file, or a text in "
        "the machine's own voice, to the simulated microphone.",
        _WHERE,
    ),
    "I14-button-released": Promise(
        "The end of a G1's long press is an event, also of the simulated one.", _WHERE
    ),
    "I14-sim-sound-faults": Promise(
        "Sound of simulated glasses can be lost in part or for a time, doubled and put out of "
        "order, and the link can be lost in mid-sentence.",
        _WHERE,
    ),
    "I14-push-to-talk": Promise(
        "A gesture that nothing on the lens needs makes glassd listen to one sentence; "
        "the same gesture stops it.",
        "issue 14, When it listens",
    ),
    "I14-session": Promise(
        "A voice session that voice:start began is listened to until its end, once.",
        "issue 14, When it listens",
    ),
    "I14-question": Promise(
        "Words to a question go to the question only.",
        "issue 14, When it listens",
    ),
    "I14-captions-private": Promise(
        "Words heard for captions are in no event and in no log.",
        "issue 14, When it listens",
    ),
    "I14-captions": Promise(
        "Live captions are on the lens line by line, under results and questions, until they are "
        "turned off, by a tool or by a double tap.",
        "issue 14, Live captions",
    ),
    "I14-listening-mark": Promise(
        "While the microphone is on the lens says so, with push to talk with the words so far, "
        "and never over a question.",
        "issue 14, When it listens",
    ),
    "I14-answers-by-voice": Promise(
        "A question says what may be said where that is heard; a spoken yes is no consent unless "
        "its question allows it, and words from before it could be read are no answer.",
        "issue 14, What it does with words",
    ),
    "I14-wake": Promise(
        "With a wake phrase only what follows it counts, at once or within six seconds.",
        "issue 14, When it listens",
    ),
    "I14-one-plain-line": Promise(
        "What cannot be heard is one plain line to who asked, and the microphone is off.",
        "issue 14, When it listens",
    ),
    "I14-microphone-forbidden": Promise(
        "A microphone that the configuration forbids is off, and stays off.",
        "issue 14, When it listens",
    ),
    "I14-own-voice": Promise(
        "Our own speech is not taken for the wearer's, and stops when the wearer speaks.",
        "issue 14, When it listens",
    ),
    "I14-who-listened": Promise(
        "Status and audit log say who listened, when and how long, and never the words.",
        "issue 14, When it listens",
    ),
    "I14-end-to-end": Promise(
        "What is spoken into the microphone of the glasses becomes the tool's answer on the lens: "
        "PCM and LC3, over Bluetooth.",
        "issue 14, Shows 1",
    ),
    "I14-nothing-asked": Promise(
        "Noise after the gesture, and speech that nobody asked glassd to listen to, call nothing.",
        "issue 14, Shows 3",
    ),
    "I14-evaluated": Promise(
        "Recognition is measured with 100 sentences nobody tunes on: what counts as right, as "
        "asked and as changed wrongly is decided by rules that have their own tests.",
        "issue 14, Shows 1",
    ),
}

DECLINED: Final[dict[str, str]] = {}
