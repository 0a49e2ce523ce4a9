"""Story: each everyday tool used from the lens by a sentence, from the command line, and from an
MCP client, against its real server; and what the wearer does not want is not done.
"""

from collections import Counter
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from edge.core.phrases import phrases_of
from firmware_bridge.messages import Gesture
from tests.e2e.broker import HOST, mosquitto
from tests.scenarios.everyday.services import running_services
from tests.scenarios.everyday.three_ways import WHO, Scene, agent, name_for_agents
from tests.scenarios.everyday.uses_at_home import AT_HOME
from tests.scenarios.everyday.uses_at_services import AT_SERVICES
from tests.scenarios.everyday.uses_of_messages import MESSAGES, UNWANTED
from tests.scenarios.world import world
from tests.system import find, needs
from tests.unit.tools.test_local_phrases import tools as all_tools

pytestmark = pytest.mark.asyncio(loop_scope="session")

USES = (*AT_HOME, *AT_SERVICES, *MESSAGES)
PACKAGES = frozenset(
    (
        *("reminder", "contacts", "pager", "web", "email", "weather", "maps"),
        *("kasa", "punchclock", "context", "continuum", "domaindoc"),
    )
)
UNSPOKEN = 16
"""How many of the tools no sentence leads to; each says why."""
LANGUAGES = ("en", "de", "es", "fr", "it")
NEEDS = {"email": (needs("dovecot"),), "pager": (needs("mosquitto"), pytest.mark.mosquitto)}
"""Package → what its rows need of this machine."""


def rows(uses):
    """Return each use by each way that it has, with what it needs of this machine."""
    return [
        pytest.param(
            use, way, id=f"{use.tool}-{way}", marks=NEEDS.get(use.tool.partition(":")[0], ())
        )
        for use in uses
        for way in WHO
        if use.say or way != "voice"
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(tmp_path_factory):
    """A wearer with all twelve packages, an MCP client at the daemon, and a second wearer."""
    folder = tmp_path_factory.mktemp("three")
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(running_services(folder))
        cloud = None
        if find("mosquitto"):
            broker = stack.enter_context(mosquitto(folder))
            clouds = await stack.enter_async_context(world(_made(folder / "cloud")))
            cloud = await clouds.start_cloud(f"{HOST}:{broker.port}")
        place = await _wearer(
            stack,
            _made(folder / "me"),
            cloud,
            tool=services.settings(),
            history={"enabled": True, "transcripts": True},
            tools={"offered_max": 128},
        )
        client = await stack.enter_async_context(agent(place))
        scene = Scene(place, services, client)
        scene.fixed["web"] = services.web.url("")
        if cloud is not None:
            scene.ben = await _wearer(
                stack, _made(folder / "ben"), cloud, tool={"pager": {"enabled": True}}
            )
            await _introduce(scene)
        yield scene


def _made(folder):
    folder.mkdir()
    return folder


async def _wearer(stack, folder, cloud, **sections):
    place = await stack.enter_async_context(world(folder, **sections))
    await place.switch_glasses_on()
    place.cloud = cloud or {}
    await place.start_daemon()
    await place.ready()
    return place


async def _introduce(scene):
    """Both have a pager, and the wearer calls the other one Ben."""
    me = (await scene.do("pager:create", name="Me"))["pager"]
    ben = (await scene.ben_does("pager:create", name="Ben"))["pager"]
    await scene.ben_does("pager:send", to=me, text="Hello")
    await scene.place.lens_shows("Hello")
    await scene.do("pager:trust", pager=ben, accept=True, name="Ben")
    scene.fixed |= {"me": me, "ben": ben}


# ------------------------------------------------------------------ the table is complete


@pytest.mark.requirement("I15-three-ways")
async def test_each_everyday_tool_has_a_row():
    tools = {tool.name: tool for tool in all_tools() if tool.name.partition(":")[0] in PACKAGES}
    assert Counter(use.tool for use in USES) == Counter(tools.keys())
    unspoken = [use.tool for use in USES if use.unspoken]
    assert len(unspoken) == UNSPOKEN, unspoken
    for use in USES:
        assert bool(use.say) is not bool(use.unspoken), use.tool
        said = [phrase for one in LANGUAGES for phrase in phrases_of(tools[use.tool], one)]
        assert bool(said) is bool(use.say), use.tool
        asked = tools[use.tool].requires_confirmation == "always"
        assert bool(use.asks) is asked, use.tool


@pytest.mark.requirement("I15-three-ways")
async def test_an_agent_is_offered_each_of_them(scene):
    listed = {tool.name for tool in (await scene.agent.list_tools()).tools}
    configured = {use.tool for use in USES if scene.services.mail or "email" not in use.tool}
    missing = {tool for tool in configured if name_for_agents(tool) not in listed}
    assert missing == {"pager:deliver"}, "which is for programs alone"


# ------------------------------------------------------------------ each way


@pytest.mark.requirement("I15-three-ways")
@pytest.mark.parametrize(("use", "way"), rows(use for use in USES if not use.refused))
async def test_a_tool_is_used(scene, use, way):
    scene.begin(way)
    if use.before is not None:
        await use.before(scene)
    answer = await scene.use(use)
    assert answer.ok, answer
    assert scene.fill(use.shows) in answer.text
    await scene.place.lens_shows(scene.fill(use.shows))
    if use.then is not None:
        await use.then(scene)
    scene.check_lens(use)


@pytest.mark.requirement("I15-three-ways")
@pytest.mark.parametrize(("use", "way"), rows(use for use in USES if use.refused))
async def test_a_tool_for_programs_is_refused(scene, use, way):
    scene.begin(way)
    answer = await scene.use(use)
    assert (answer.ok, answer.text) == (False, use.refused)


# ------------------------------------------------------------------ a no


@pytest.mark.requirement("I15-three-ways")
@pytest.mark.parametrize(("use", "way"), rows(UNWANTED))
async def test_nothing_is_done_after_a_no(scene, use, way):
    scene.begin(way)
    if use.before is not None:
        await use.before(scene)
    answer = await scene.use(use, Gesture.DOUBLE_TAP)
    assert (answer.ok, answer.text) == (False, "DENIED")
    await use.then(scene)
    scene.check_lens(use)
