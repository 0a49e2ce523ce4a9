"""Story: the cloud asks for what is the wearer's; it gets what the owner allowed, and nothing
else.
"""

import uuid

import pytest

from tests.scenarios.world import whole_world

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOON = {"start": "2026-12-01T12:00:00Z", "end": "2026-12-01T13:00:00Z"}
PRIVATE = (
    ("notes:add", {"text": "from the cloud"}),
    ("notes:list", {}),
    ("notes:search", {"query": "key"}),
    ("kb:search", {"query": "key"}),
    ("kb:get", {"id": "note:1"}),
    ("calendar:get_availability", NOON),
    ("contacts:extract", {"text": "eva@example.com"}),
    ("calendar:create_event", {"title": "Lunch", **NOON}),
    ("timer:list", {}),
    ("timer:cancel", {"id": 1}),
)


async def asked(cloud_side, tool, args=None):
    return await cloud_side.answer_to(await cloud_side.invokes(tool, args or {}))


@pytest.mark.requirement("I11-cloud-may")
async def test_the_cloud_may_use_the_glasses_but_read_nothing_private(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        await place.call("notes:add", {"text": "the key is under the mat"})
        for tool, args in PRIVATE:
            error = (await asked(cloud_side, tool, args)).get("error")
            assert error is not None, tool
            assert (tool, error["code"]) == (tool, "DENIED")
            assert f'cloud_may = ["glasses", "declared", "{tool}"]' in error["suggestion"]
            assert "[policy]" in error["suggestion"]
            assert "glassd.toml" in error["suggestion"]
            through = (await asked(cloud_side, "registry:invoke", {"tool": tool, "args": args}))[
                "error"
            ]
            assert (through["code"], through["suggestion"]) == ("DENIED", error["suggestion"])
        for tool, args in (
            ("clock:now", {}),
            ("glasses:show_text", {"text": "hello"}),
            ("timer:start", {"seconds": 600}),
        ):
            assert (await asked(cloud_side, tool, args))["ok"], tool
        assert (await place.call("registry:invoke", {"tool": "notes:list", "args": {}})).ok, (
            "the wearer's own call"
        )


async def test_the_cloud_hears_only_of_tools_it_may_call(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        report = await cloud_side.hears_on("capabilities", model="mock:display")
        names = {tool["name"] for tool in report.body["tools"]}
        assert {"glasses:show_text", "clock:now"} <= names
        assert not {name for name, _ in PRIVATE} & names

        found = (
            await asked(
                cloud_side,
                "registry:search",
                {"query": "notes calendar knowledge evaluate", "limit": 20},
            )
        )["data"]["tools"]
        assert not [
            one["tool"]
            for one in found
            if not one["tool"].startswith(
                ("glasses:", "clock:", "timer:start", "session:", "voice:")
            )
        ]
        own = await place.call(
            "registry:search", {"query": "notes calendar knowledge", "limit": 20}
        )
        assert {"notes:list", "kb:search"} <= {one["tool"] for one in own.data["tools"]}

        assert (await asked(cloud_side, "registry:describe", {"tool": "notes:list"}))["error"][
            "code"
        ] == "DENIED"
        assert (await asked(cloud_side, "registry:describe", {"tool": "clock:now"}))["ok"]
        refused = (await asked(cloud_side, "registry:load", {"tools": ["notes:list"]}))["error"]
        assert "cloud" in refused["details"][0]["reason"]


async def test_the_owner_says_what_the_cloud_may_call(tmp_path, cloud):
    policy = {"cloud_may": ["notes:*", "declared"]}
    async with (
        whole_world(tmp_path, cloud=cloud, policy=policy) as place,
        place.onlooker() as cloud_side,
    ):
        assert (await asked(cloud_side, "notes:list"))["ok"]
        assert (await asked(cloud_side, "registry:invoke", {"tool": "notes:list", "args": {}}))[
            "ok"
        ]
        assert (await asked(cloud_side, "clock:now"))["ok"]
        for tool, args in (("timer:list", {}), ("glasses:show_text", {"text": "hello"})):
            assert (await asked(cloud_side, tool, args))["error"]["code"] == "DENIED"
        report = await cloud_side.hears_on("capabilities", model="mock:display")
        assert {"notes:list", "clock:now"} <= {tool["name"] for tool in report.body["tools"]}
        assert not [
            tool["name"] for tool in report.body["tools"] if tool["name"].startswith("glasses:")
        ]


async def test_the_cloud_gets_no_answer_that_was_given_to_the_wearer(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        told = await place.call("notes:list", call_id=str(uuid.uuid4()))
        call_id = told.meta["callId"]
        for tool in ("notes:list", "clock:now"):
            await cloud_side.invokes(tool, {}, call_id=call_id)
            answer = await cloud_side.hears(
                "an answer",
                lambda s: s.kind == "result" and s.body.get("id") == call_id and not s.body["ok"],
            )
            assert "notes" not in str(answer.body.get("data"))
        assert not [body for body in cloud_side.results_of(call_id) if body["ok"]]
