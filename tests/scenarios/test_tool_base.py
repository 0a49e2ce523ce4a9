"""Story: a tool written as a class, on a whole daemon: what it asks for is really there, and
lasts.
"""

import pytest

from edge.config.model import ToolSettings
from edge.tools.handlers import Handlers
from edge.tools.registry import RegistrySettings
from tests.scenarios.world import until, world

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

KEEPER = """
import logging
from collections.abc import Mapping

from tools_cache.api.base import Tool
from tools_cache.api.handed import KV, Audit, Cloud, Config, Database, Display, Files, Json, Session


class Keeper(Tool):
    def __init__(self, db: Database, files: Files, kv: KV, display: Display, cloud: Cloud, session: Session, audit: Audit,
                 config: Config, log: logging.Logger) -> None:
        self.db, self.files, self.kv, self.display, self.cloud = db, files, kv, display, cloud
        self.session, self.audit, self.config, self.log = session, audit, config, log

    async def run(self, args: Mapping[str, Json]) -> Json:
        told = await self.display.show("One moment", title="Keeper")
        await self.db.create_table("kept", {"text": "TEXT NOT NULL", "encrypted__pin": "TEXT"})
        await self.db.insert("kept", {"text": "plain words", "encrypted__pin": args["text"]})
        await self.files.write("last.txt", "a file of mine")
        await self.kv.set("calls", await self.kv.get("calls", 0) + 1)
        self.audit.log("something was kept")
        self.log.info("kept one")
        time = await self.cloud.call("clock:now", {})
        pins = [row["encrypted__pin"] for row in await self.db.select("kept")]
        return {"data": {"text": f"Kept {len(pins)}", "told": told, "pins": pins, "calls": await self.kv.get("calls"), "time": time["ok"],
                         "voice": self.session.state()["voice_active"], "enabled": self.config["enabled"]}}
"""  # noqa: E501


@pytest.mark.requirement("S2-50", "S4-05", "S4-26", "S4-29", "C-38")
async def test_what_a_class_asks_for_is_there_and_what_it_keeps_outlives_the_daemon(tmp_path):
    folder = tmp_path / "tools" / "notes_add"
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text(KEEPER)
    async with world(tmp_path) as place:
        await place.switch_glasses_on(speed=8.0)
        for number in (1, 2):
            await place.start_daemon()
            await place.ready()
            shipped, mine = place.daemon.tools._handlers, Handlers(tmp_path / "tools")
            place.daemon.tools._handlers = Only(mine, shipped)
            done = await place.call("notes:add", {"text": f"TOP SECRET {number}"})
            assert done.ok, done.error
            assert done.data["told"] in {"shown", "acknowledged"}
            assert done.data["pins"] == [f"TOP SECRET {n}" for n in range(1, number + 1)]
            assert (
                done.data["calls"],
                done.data["time"],
                done.data["voice"],
                done.data["enabled"],
            ) == (number, True, False, True)
            await place.lens_shows(f"Kept {number}")
            await until(
                lambda: any("One moment" in str(page) for page in place.drawn()),
                "the word before the result",
            )
            await place.stop_daemon()
    state = tmp_path / "state"
    mine = state / "users" / "local" / "tools" / "notes"
    assert (mine / "files" / "last.txt").read_text() == "a file of mine"
    everything = b"".join(p.read_bytes() for p in mine.rglob("*") if p.is_file())
    assert b"plain words" in everything
    assert b"TOP SECRET" not in everything
    assert "something was kept" in (state / "audit" / "calls.jsonl").read_text()


class Only:
    """The story's own handler for one tool, the shipped ones for all others."""

    def __init__(self, mine, shipped):
        self.mine, self.shipped = mine, shipped

    def find(self, definition):
        return (self.mine if definition.name == "notes:add" else self.shipped).find(definition)


async def test_a_tool_with_wrong_settings_is_off_with_its_reason_until_a_good_reload(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon()
        daemon = place.daemon
        wrong = ToolSettings(
            {}, {"clock:now": "its settings are wrong ([tool.clock.now] timezone: …)"}
        )
        daemon.registry.apply(RegistrySettings(off=wrong.off))
        refused = await place.call("clock:now")
        assert not refused.ok
        assert "its settings are wrong" in refused.error.message
        daemon.registry.apply(RegistrySettings())
        daemon.tools.configure({"clock:now": {"enabled": True, "timezone": "Asia/Tokyo"}})
        assert (await place.call("clock:now")).data["timezone"] == "Asia/Tokyo"
