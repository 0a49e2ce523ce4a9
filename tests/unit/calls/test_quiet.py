"""A wearer who is left alone: the farewell is the last thing said, and speech is not acted on
until the time is over.
"""

import pytest

from edge.runtime.clock import Clock
from tests.unit.calls.orchestrator_house import house
from tools_cache.api.tool import ErrorType, Mode, ToolResponse

QUIET = (
    {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
    {"type": "SUPPRESS_AUDIO", "value": True, "after": "farewell_spoken", "duration": 600},
)


class Rig:
    """Boot time is moved by hand; `said` is what the stage was given, with whether silence held
    by then.
    """

    def __init__(self):
        self.now = 1000.0
        self.clock = Clock(boot=lambda: self.now, wall=lambda: 1_795_257_000.0, boot_id="b")
        self.said = []

    def listen(self, h):
        present = h.stage.present

        async def presented(call_id, response, **more):
            self.said.append(
                (
                    (response.render or {}).get("suppressVoiceResponse", False),
                    h.orchestrator.session.silent(self.now),
                )
            )
            return await present(call_id, response, **more)

        h.stage.present = presented


@pytest.fixture
def rig():
    return Rig()


async def leave_alone(call, progress):
    return ToolResponse(data={"text": "Bye"}, intents=QUIET)


@pytest.mark.requirement("S2-128")
async def test_after_the_farewell_nothing_is_spoken_until_the_time_ends(tmp_path, rig):
    async with house(tmp_path, clock=rig.clock) as h:
        rig.listen(h)
        h.tools.handler = leave_alone
        assert (await h.orchestrator.heard("my notes")).ok
        assert rig.said == [(False, False)], "the farewell itself is not silenced"
        state = h.orchestrator.session.described(rig.now)
        assert (state["voice_active"], state["suppress_audio"], state["quiet_s"]) == (
            False,
            True,
            600,
        )

        h.tools.handler = h.tools.echo
        runs = len(h.tools.runs)
        refused = await h.orchestrator.heard("my notes")
        assert (refused.error.type, refused.error.message) == (
            ErrorType.SESSION_INACTIVE,
            "Quiet for another 600 s",
        )
        assert (len(h.tools.runs), len(rig.said)) == (runs, 1), "neither run nor shown"

        assert (await h.call("notes:list")).ok
        assert rig.said[-1] == (True, True), "what a program asks for is shown, not spoken"

        rig.now += 600
        assert (await h.orchestrator.heard("my notes")).ok
        assert rig.said[-1] == (False, False)


@pytest.mark.requirement("S2-128")
async def test_a_new_session_ends_the_quiet_time_early(tmp_path, rig):
    async with house(tmp_path, clock=rig.clock) as h:
        h.tools.handler = leave_alone
        await h.call("notes:list", mode=Mode.TEXT)
        assert not (await h.orchestrator.heard("my notes")).ok

        async def begin(call, progress):
            return ToolResponse(
                data={}, intents=({"type": "START_VOICE_SESSION", "sessionId": "voice-1"},)
            )

        h.tools.handler = begin
        await h.call("notes:list")
        assert h.orchestrator.session.snapshot().session_id == "voice-1"
        h.tools.handler = h.tools.echo
        assert (await h.orchestrator.heard("my notes")).ok
        (move, *_) = await h.sessions.transitions(5)
        assert (move["after"]["voice_active"], move["before"]["quiet_s"]) == (True, 600), (
            "how long, not until when on a clock of ours"
        )
