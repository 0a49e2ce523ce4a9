"""Flights: what is due when, and how a call ends that nobody answered."""

import pytest

from edge.cloud.mqtt.inflight import (
    ASK_AGAIN_S,
    InflightMessage,
    InflightMessages,
    refused,
    unanswered,
)
from tools_cache.api.tool import ErrorCode, ErrorType


def inflight():
    return InflightMessages(lambda: 0.5)


def a_message(seq, *, lane="call", dies_at=100.0, accepted=False):
    return InflightMessage(
        seq,
        lane,
        "call" if lane == "call" else "result",
        f"id{seq}",
        "t",
        0.0,
        dies_at,
        accepted=accepted,
    )


def test_new_messages_are_due_at_once_in_order():
    f = inflight()
    for seq in (3, 1, 2):
        f.add(a_message(seq))
    assert [x.seq for x in f.take_due(0.0)] == [1, 2, 3]
    assert f.take_due(1000.0 - 901) == []


def test_the_oldest_of_what_waits_has_an_age():
    f = inflight()
    assert f.oldest_age_s(50.0) == 0.0
    for seq, born_at in ((1, -30.0), (2, 10.0)):
        f.add(InflightMessage(seq, "call", "call", f"id{seq}", "t", born_at, 100.0))
    assert f.oldest_age_s(50.0) == 80.0
    f.remove(1)
    assert f.oldest_age_s(50.0) == 40.0


def test_an_unaccepted_call_comes_again_at_doubling_distances():
    f = inflight()
    f.add(a_message(1))
    now, sends = 0.0, []
    while now < 20:
        for message in f.take_due(now):
            sends.append((now, message.attempt))
            f.sent(message, now)
        now = f.next_due()
    assert sends == [(0.0, 1), (1.0, 2), (3.0, 3), (7.0, 4), (15.0, 5)]


@pytest.mark.requirement("I12-backlog-resend")
def test_a_call_among_many_is_not_sent_again_before_the_cloud_can_have_read_it():
    f = inflight()
    for seq in range(1000):
        f.add(a_message(seq))
    for message in f.take_due(0.0):
        f.sent(message, 0.0)
    assert f.next_due() == 1.0 + 10.0
    for seq in range(901):
        f.remove(seq)
    for message in f.take_due(11.0):
        f.sent(message, 11.0)
    assert f.next_due() == 11.0 + 2.0


def test_an_accepted_call_is_not_repeated_when_its_puback_is_late():
    f = inflight()
    f.add(a_message(1))
    (message,) = f.take_due(0.0)
    f.accept("id1", 1.0)
    f.sent(message, 2.0)
    f.all_due(accepted_too=False)
    assert f.take_due(1.0 + ASK_AGAIN_S - 0.1) == []


def test_an_accepted_call_without_a_result_is_offered_again():
    f = inflight()
    f.add(a_message(1, dies_at=1000.0))
    f.take_due(0.0)
    f.accept("id1", 0.0)
    (message,) = f.take_due(ASK_AGAIN_S)
    f.sent(message, ASK_AGAIN_S)
    assert f.next_due() == 2 * ASK_AGAIN_S


def test_an_old_accepted_call_is_offered_again_after_a_restart():
    f = inflight()
    f.add(a_message(1, accepted=True))
    assert f.next_due() == ASK_AGAIN_S


def test_when_the_broker_forgot_our_session_accepted_calls_go_again_once():
    f = inflight()
    f.add(a_message(1, accepted=True))
    assert f.take_due(0.0) == []
    f.all_due(accepted_too=True)
    (message,) = f.take_due(1.0)
    f.sent(message, 1.0)
    assert f.next_due() == 1.0 + ASK_AGAIN_S


def test_a_connect_makes_everything_unaccepted_due_but_only_once():
    f = inflight()
    f.add(a_message(1))
    f.sent(f.take_due(0.0)[0], 0.0)
    f.all_due(accepted_too=False)
    assert [x.attempt for x in f.take_due(0.1)] == [2]
    assert f.take_due(5.0) == []  # the older appointment is void


def test_a_removed_message_is_never_due_and_never_expires():
    f = inflight()
    f.add(a_message(1))
    f.remove(1)
    f.remove(1)
    assert (f.take_due(0.0), f.take_dead(1000.0), len(f), f.call("id1")) == ([], [], 0, None)
    assert f.next_death() is None


def test_the_dead_are_given_once_and_not_sent_any_more():
    f = inflight()
    f.add(a_message(1, dies_at=10.0))
    f.add(a_message(2, dies_at=20.0))
    assert f.next_death() == 10.0
    assert [x.seq for x in f.take_dead(10.0)] == [1]
    assert f.take_dead(10.0) == []
    assert [x.seq for x in f.take_due(15.0)] == [2]
    assert f.take_due(25.0) == []


def test_a_call_submitted_twice_flies_once():
    f = inflight()
    f.add(a_message(1))
    f.add(a_message(1))
    assert len(f.take_due(0.0)) == 1


@pytest.mark.parametrize(
    ("attempt", "accepted", "heard", "code", "phase"),
    [
        (0, False, False, ErrorCode.NOT_ACCEPTED, "not_accepted"),
        (4, False, False, ErrorCode.NOT_ACCEPTED, "not_accepted"),
        (1, True, False, ErrorCode.TIMEOUT, "accepted_silent"),
        (1, True, True, ErrorCode.DEADLINE_EXPIRED, "ran_too_long"),
    ],
)
def test_the_three_ways_to_fail_differ(attempt, accepted, heard, code, phase):
    message = a_message(1, accepted=accepted)
    message.attempt, message.heard = attempt, heard
    error = unanswered(message).error
    assert (error.code, error.type, error.retryable) == (code, ErrorType.TRANSIENT, True)
    assert error.details == {"phase": phase, "attempts": attempt}


def test_never_sent_and_never_taken_read_differently():
    sent, unsent = a_message(1), a_message(2)
    sent.attempt = 1
    assert unanswered(sent).error.message != unanswered(unsent).error.message


@pytest.mark.parametrize(
    ("reason", "code", "retryable"),
    [
        (0x87, ErrorCode.AUTH, False),
        (0x97, ErrorCode.RATE_LIMIT, True),
        (0x83, ErrorCode.NETWORK_ERROR, True),
    ],
)
def test_a_refusal_by_the_broker_says_what_and_what_to_do(reason, code, retryable):
    error = refused(a_message(1), reason, "Not authorized").error
    assert (error.code, error.retryable, error.details["reason_code"]) == (code, retryable, reason)
    assert "Not authorized" in error.message


def test_what_is_gone_leaves_no_trace_though_something_older_lives_on():
    f = inflight()
    f.add(a_message(1, dies_at=10.0))
    for seq in range(2, 2000):
        f.add(a_message(seq, lane="tell", dies_at=100.0))
        f.remove(seq)
    assert len(f._deaths) < 100
    assert f.next_death() == 10.0
    assert [x.seq for x in f.take_dead(10.0)] == [1]
    for seq in range(3000, 3200):
        f.add(a_message(seq, lane="tell", dies_at=100.0))
        f.remove(seq)
    assert f.take_dead(10.0) == [], "an expired message is returned once"
