"""Story: a tool that was changed is asked about as it is now, however the call came and
whatever was agreed to before.
"""

import pytest

from edge.core import call_summary, confirmation
from edge.core.grants import Grant, Granted
from edge.runtime.ids import new_call_id
from edge.tools.user_tools import read
from tests.scenarios.test_consent import FOLDER, PAY, alone
from tests.scenarios.world import world
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = pytest.mark.asyncio(loop_scope="session")


def change(place, old, new):
    """Change the owner's tool, as a saved file does."""
    (place.folder / "tools.d" / "bank.toml").write_text(FOLDER.replace(old, new))
    place.daemon.own_tools.use(read([place.folder / "tools.d"]))


async def begin(place, amount, turn_id):
    call = ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool=PAY,
        args={"amount": amount},
        origin=CallOrigin.MCP,
        turn_id=turn_id,
    )
    answer = await place.daemon.calls.begin(call)
    return None if answer is None else answer.error.code


@pytest.mark.requirement("I11-consent-frozen")
async def test_a_tool_that_needs_a_yes_now_asks_in_an_old_turn_too(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        change(place, 'requiresConfirmation = "always"', 'requiresConfirmation = "never"')
        assert await begin(place, 1, "turn") is None
        change(place, "Pays somebody.", "Pays everybody.")
        assert await begin(place, 2, "turn") == "CONFIRMATION_REQUIRED"


@pytest.mark.requirement("I11-consent-frozen")
async def test_an_always_does_not_hold_for_a_changed_tool_in_an_old_turn(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        tool = place.daemon.registry.snapshot().find(PAY).definition
        granted = Granted(
            Grant.ALWAYS, confirmation.definition_digest(tool), call_summary.origin(tool)
        )
        await place.daemon.confirmations.grant("local", PAY, granted)
        assert await begin(place, 1, "turn") is None
        change(place, "Pays somebody.", "Pays everybody.")
        assert await begin(place, 2, "turn") == "CONFIRMATION_REQUIRED"
