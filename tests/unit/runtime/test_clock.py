"""The clocks: what the kernel says of the wall clock is asked at most once a second."""

from edge.runtime.clock import once_a_second


def test_the_clocks_state_is_asked_once_a_second():
    hands, asked = [50.0], []

    def ask():
        asked.append(hands[0])
        return len(asked) % 2 == 1

    state = once_a_second(ask, lambda: hands[0])
    seen = []
    for at in (50.0, 50.4, 50.9, 51.0, 51.9, 60.0):
        hands[0] = at
        seen.append(state())
    assert asked == [50.0, 51.0, 60.0]
    assert seen == [True, True, True, False, False, True]
