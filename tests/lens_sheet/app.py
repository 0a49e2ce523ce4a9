"""A mini-app of the contact sheet: it bakes bread slowly and says how far it is."""

import asyncio

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import Progress, create_tool, params, reply

STEPS = ("Mixing the dough", "In the oven: 30 minutes left", "In the oven: 5 minutes left")
STEP_S = 2.0


async def _bake(_args, _context):
    await asyncio.sleep(STEP_S)
    for step in STEPS:
        yield Progress(step)
        await asyncio.sleep(STEP_S)
    yield reply({"loaves": 2}, show="Two loaves are ready")


app = AppServer("com.test.sheet", name="Bakery")
app.register_tool(
    create_tool(
        "bake",
        "Bakes bread.",
        params(),
        _bake,
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
