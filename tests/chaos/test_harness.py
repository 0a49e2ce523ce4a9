"""The storm's own tests: judges find what is planted, and only that; the same seed is the same
storm; a small storm passes.
"""

import json
import sqlite3
from pathlib import Path

import msgpack
import pytest

from tests.chaos import air, judge, schedule
from tests.chaos.__main__ import printed, report
from tests.chaos.hci import Doctored
from tests.chaos.msgpack_reader import unpack
from tests.chaos.proxy import _packet
from tests.chaos.storm import Storm
from tests.system import needs

OK = {"ok": True, "data": {"token": "L0-0", "tool": "mark"}, "meta": {"callId": "c1"}}
FAILED = {
    "ok": False,
    "error": {"type": "TRANSIENT", "code": "INTERRUPTED", "message": "", "retryable": True},
}
PENDING = {"ok": True, "data": {"status": "pending", "pendingToolCallId": "c1"}}


def caller(ev, **fields):
    return {"t": 0, "ev": ev, "token": "L0-0", "id": "c1", **fields}


def heard(topic, kind, body):
    return {"t": 0, "ev": "heard", "topic": topic, "k": kind, "body": body}


EFFECT = {"t": 0, "ev": "effect", "tool": "mark", "token": "L0-0"}
INVOKED = {"t": 0, "ev": "invoke", "token": "L0-1", "id": "i1", "kind": "jot_invoked"}
NOTED = {"id": "i1", "ok": True, "data": {"text": "Noted: L0-1"}}


def told(
    tmp_path: Path, *, callers=(), effects=(), cloud=(), recording=b"", notes=None
) -> list[tuple[str, str]]:
    """What the judge says of these records: (verdict, rule) of each offence."""
    for name, said in (("callers", callers), ("effects", effects), ("cloud", cloud)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    (tmp_path / "air.bin").write_bytes(recording)
    where = None
    if notes is not None:
        where = tmp_path / "notes.db"
        where.unlink(missing_ok=True)
        db = sqlite3.connect(where)
        db.execute("CREATE TABLE notes (text TEXT)")
        db.executemany("INSERT INTO notes VALUES (?)", [(text,) for text in notes])
        db.commit()
        db.close()
    found = judge.verdict(tmp_path, where)
    assert found["lost"] + found["doubled"] + found["untold"] == len(found["offences"])
    return [(o["verdict"], o["rule"]) for o in found["offences"]]


def test_honest_records_are_found_clean(tmp_path):
    again = caller("answer", body={**OK, "meta": {"callId": "c1", "delivery": "shown"}})
    callers = [caller("accepted"), caller("answer", body=OK), again, INVOKED]
    cloud = [
        heard("reply/operator", "accepted", {"id": "i1"}),
        *[heard("reply/operator", "result", NOTED)] * 2,
    ]
    recording = (
        Doctored()
        .link()
        .show("c1")
        .show("c1", 2)
        .show("c2")
        .link()
        .show("c2")
        .show("c3")
        .sound("L0-2")
        .end()
    )
    assert not told(
        tmp_path,
        callers=callers,
        effects=[EFFECT],
        cloud=cloud,
        notes=["L0-1"],
        recording=recording,
    )


@pytest.mark.parametrize(
    "callers",
    [
        [caller("accepted")],
        [caller("accepted"), caller("answer", id="another", body=OK)],
    ],
)
def test_a_planted_loss_is_found(tmp_path, callers):
    assert ("lost", "an accepted call has its answer") in told(
        tmp_path, callers=callers, effects=[EFFECT]
    )


def test_a_planted_loss_of_an_invocation_is_found(tmp_path):
    cloud = [heard("reply/operator", "accepted", {"id": "i1"}), heard("result", "result", NOTED)]
    assert told(tmp_path, callers=[INVOKED], cloud=cloud) == [
        ("lost", "an invocation has its result")
    ]


def test_an_effect_that_was_promised_and_is_not_there_is_a_loss(tmp_path):
    assert told(tmp_path, callers=[caller("answer", body=OK)]) == [
        ("lost", "what was answered ok was done")
    ]
    cloud = [heard("reply/operator", "result", NOTED)]
    assert told(tmp_path, callers=[INVOKED], cloud=cloud, notes=[]) == [
        ("lost", "what was answered ok was done")
    ]


def test_a_planted_double_effect_is_found(tmp_path):
    answered = [caller("answer", body=OK)]
    assert told(tmp_path, callers=answered, effects=[EFFECT, EFFECT]) == [
        ("doubled", "at most one effect")
    ]
    assert told(tmp_path, notes=["L0-1", "L0-1"]) == [("doubled", "at most one effect")]


def test_an_idempotent_tool_may_run_twice(tmp_path):
    assert not told(tmp_path, effects=[{**EFFECT, "tool": "note"}] * 2)


def test_two_different_answers_are_found_wherever_they_were_told(tmp_path):
    assert told(
        tmp_path,
        callers=[caller("answer", body=OK), caller("answer", body=FAILED)],
        effects=[EFFECT],
    )[0] == ("doubled", "one answer per call")
    cloud = [
        heard("reply/operator", "result", NOTED),
        heard("reply/operator", "result", {"id": "i1", **FAILED}),
    ]
    assert ("doubled", "one result per invocation") in told(
        tmp_path, callers=[INVOKED], cloud=cloud, notes=["L0-1"]
    )
    cloud = [
        heard("result", "result", {"id": "c1", **OK}),
        heard("result", "result", {"id": "c1", **FAILED}),
    ]
    assert told(tmp_path, cloud=cloud) == [("doubled", "one result per call from the cloud")]


def test_a_failure_that_hides_what_it_did_is_found(tmp_path):
    hidden = [caller("answer", body=FAILED)]
    assert told(tmp_path, callers=hidden, effects=[EFFECT]) == [
        ("untold", "a failure tells what it may have done")
    ]
    honest = {**FAILED, "error": {**FAILED["error"], "partialSideEffects": True}}
    assert not told(tmp_path, callers=[caller("answer", body=honest)], effects=[EFFECT])


@pytest.mark.parametrize(
    "recording",
    [
        Doctored().link().show("c1").show("c1"),
        Doctored().link().show("c1").show("c2").show("c1"),
        Doctored().link().show("c1").link().show("c1").show("c1"),
        Doctored().link().show("c1").link().show("c2").show("c1"),
        Doctored().link().show("c1").show("c9/confirm").show("c1").show("c1"),
        Doctored().link().show("c1").show("c9/confirm").show("c2").show("c1"),
        Doctored().link().show("c1").show("c2").show("c9/confirm").show("c1"),
        Doctored().link().show("c1").link().show("c2").show("c9/confirm").show("c1"),
    ],
)
def test_a_planted_double_rendering_is_found(tmp_path, recording):
    assert told(tmp_path, recording=recording.end()) == [("doubled", "one rendering per scene")]


@pytest.mark.parametrize(
    "recording",
    [
        Doctored().link().show("c1").link().show("c1").link().show("c1"),
        Doctored().link().show("c1", drawn=0).show("c1"),
        Doctored().link().show("c1/word").show("c1/word"),
        Doctored().link().show("c1").show("c1", 2).link().show("c1", 2),
        Doctored().link().show("c1").show("c9/confirm").show("c1"),
        Doctored().link().show("c1").link().show("c9/confirm").show("c1"),
        Doctored().link().show("c1").show("c9/confirm").link().show("c1").show("c9/confirm"),
    ],
)
def test_a_restoration_is_no_second_rendering(tmp_path, recording):
    assert not told(tmp_path, recording=recording.end())


def asked(at: float) -> bytes:
    """A question on a link, and on another made later, after a result there."""
    return Doctored().link(1.0).show("c1/confirm").link(at).show("c2").show("c1/confirm").end()


def test_a_question_that_is_open_is_asked_again_on_every_link(tmp_path):
    assert not told(tmp_path, recording=asked(2.0))
    waits = caller("answer", body={**FAILED, "error": {"code": "CONFIRMATION_REQUIRED"}})
    assert not told(tmp_path, callers=[{**waits, "t": 1.5}], recording=asked(2.0))
    ended = caller("answer", body=OK)
    records = {"callers": [{**ended, "t": 2.5}], "effects": [{**EFFECT, "t": 2.5}]}
    assert not told(tmp_path, **records, recording=asked(2.0))


@pytest.mark.parametrize(("answered", "done"), [(1.5, 2.5), (2.5, 1.5)], ids=["answered", "done"])
def test_a_question_that_comes_back_after_it_was_over_is_found(tmp_path, answered, done):
    records = {
        "callers": [{**caller("answer", body=OK), "t": answered}],
        "effects": [{**EFFECT, "t": done}],
    }
    assert told(tmp_path, **records, recording=asked(2.0)) == [
        ("doubled", "a question is asked until it is over")
    ]


@pytest.mark.parametrize(
    "recording",
    [
        Doctored().link().show("c1/confirm").show("c1/confirm"),
        Doctored().link().show("c1/confirm").show("c1").link().show("c1/confirm"),
    ],
)
def test_a_question_that_is_asked_twice_is_found(tmp_path, recording):
    assert told(tmp_path, recording=recording.end()) == [
        ("doubled", "a question is asked until it is over")
    ]


def test_a_planted_second_speech_is_found_also_on_another_link(tmp_path):
    assert told(tmp_path, recording=Doctored().link().sound("L1-1").link().sound("L1-1").end()) == [
        ("doubled", "spoken at most once")
    ]
    assert not told(tmp_path, recording=Doctored().link().sound("L1-1").link().sound("L1-2").end())


def test_a_showing_that_is_told_twice_or_never_was_is_found(tmp_path):
    def report(t, age, *, dup=False):
        return {
            **heard("delivery", "delivery", {"id": "c1", "delivery": "shown", "age": age}),
            "t": t,
            "dup": dup,
        }

    recording = Doctored().link().show("c1").end()
    assert not told(
        tmp_path, cloud=[report(10.0, 1000), report(15.0, 6000)], recording=recording
    ), "the edge sent it again"
    assert not told(
        tmp_path, cloud=[report(10.0, 1000), report(15.0, 1000, dup=True)], recording=recording
    ), "the broker did"
    other_dup = [report(10.0, 1000), report(15.0, 900, dup=True)]
    assert told(tmp_path, cloud=other_dup, recording=recording) == [
        ("doubled", "shown is told once")
    ]
    assert told(tmp_path, cloud=[report(10.0, 1000), report(15.0, 1000)], recording=recording) == [
        ("doubled", "shown is told once")
    ]
    other = Doctored().link().show("c2").end()
    assert told(tmp_path, cloud=[report(10.0, 1000)], recording=other) == [
        ("untold", "what is told as shown was drawn")
    ]


def test_a_recording_is_read_through_its_tears(tmp_path):
    whole = Doctored().link().show("c1").link().show("c2").end()
    (tmp_path / "air.bin").write_bytes(whole[:-40])
    drawn, _ = air.read(tmp_path / "air.bin")
    assert [d.scene for d in drawn] == ["c1"]


# ------------------------------------------------------------------ the plan and the tools


def test_the_same_seed_is_the_same_storm_and_another_is_another():
    assert schedule.plan(7, 40, 680) == schedule.plan(7, 40, 680)
    assert schedule.plan(7, 40, 680) != schedule.plan(8, 40, 680)


def test_a_plan_holds_every_fault_every_call_and_enough_kills_of_running_calls():
    lives = schedule.plan(1, 300, 5100)
    assert schedule.counted(lives)["calls"] == 5100
    assert set(schedule.counted(lives)["calls_by_kind"]) == set(schedule.CALLS)
    assert {f.kind for life in lives for f in life.faults} == set(schedule.FAULTS)
    assert sum(life.aim == schedule.RUNNING for life in lives) > 300 / 4
    tokens = [call.token for life in lives for call in life.calls]
    assert len(set(tokens)) == len(tokens)


def test_the_witness_reads_messagepack_as_its_makers_do():
    value = {
        "v": 1,
        "n": [None, True, -1, -33, 200, 70000, 2**40, -(2**40), 1.5],
        "t": "ä" * 300,
        "b": b"x" * 300,
        "m": {"k": []},
    }
    assert unpack(msgpack.packb(value)) == value
    with pytest.raises(ValueError, match="early"):
        unpack(msgpack.packb("cut off")[:-1])


@pytest.mark.parametrize(
    ("buffer", "size"),
    [
        (b"", 0),
        (b"\x30", 0),
        (b"\x30\x02ab", 4),
        (b"\x30\x02abX", 4),
        (b"\x30\x02a", 0),
        (b"\x40\x80\x01" + bytes(128), 131),
    ],
)
def test_the_network_knows_where_a_packet_ends(buffer, size):
    assert _packet(buffer) == size


# ------------------------------------------------------------------ a small storm


@pytest.mark.timeout(120)
@pytest.mark.mosquitto
@pytest.mark.requirement("K3-chaos")
@needs("mosquitto")
def test_a_small_storm_loses_and_doubles_nothing(tmp_path):
    storm = Storm(tmp_path, drain_s=60)
    storm.run(
        schedule.plan(
            5,
            5,
            60,
            faults=("cut_up", "glasses_drop", "clock_forward", "worker_kill"),
            mean_up_s=1.0,
        )
    )
    found = report(storm, 5, 0.0)
    assert (found["lost"], found["doubled"]) == (0, 0), printed(found)
    assert found["kills"] == 5
    assert found["calls"] == 60
    assert found["answered"] > 40, printed(found)
    assert found["drawn"], "the tap heard the air"
