"""Story: the knowledge base finds documents in sections, in a whole daemon."""

import pytest

from tests.scenarios.world import world
from tools_cache.api.tool import ErrorCode, Mode

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]
PLAN = {"title": "Garden plan", "text": "# Beds\nBeans\n# North\nFern and moss"}


@pytest.mark.requirement("I15-documents-known")
async def test_a_section_is_found_and_read_while_its_tools_are_on(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon(tool={"domaindoc": {"enabled": True}})
        assert (await place.call("domaindoc:create", PLAN)).ok
        found = await place.call("kb:search", {"query": "moss"})
        assert found.data["text"] == "- Garden plan, section North: Fern and moss"
        whole = await place.call("kb:get", {"id": found.data["results"][0]["id"]})
        assert whole.data["content"] == "# North\nFern and moss"
        spoken = await place.call("kb:search", {"query": "moss"}, mode=Mode.VOICE, turn_id="t1")
        assert spoken.data["total"] == 1, "within the budget of one spoken turn"
        await place.stop_daemon()

        await place.start_daemon()
        assert (await place.call("domaindoc:list")).error is not None
        assert (await place.call("kb:search", {"query": "moss"})).data["results"] == []
        gone = await place.call("kb:get", {"id": "section:1/2"})
        assert gone.error.code is ErrorCode.INVALID_ARGUMENTS


async def test_a_caller_that_may_not_search_documents_does_not_find_their_sections(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon(tool={"domaindoc": {"enabled": True}})
        assert (await place.call("domaindoc:create", PLAN)).ok
        await place.daemon.choice.disable("local", "domaindoc:search", origin="cli")
        assert (await place.call("kb:search", {"query": "moss"})).data["results"] == []
        await place.daemon.choice.enable("local", "domaindoc:search", origin="cli")
        assert (await place.call("kb:search", {"query": "moss"})).data["total"] == 1
