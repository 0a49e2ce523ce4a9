"""frameutils 0.1.15, the maker's utilities, at the simulated Frame."""

import asyncio

from frameutils import Bluetooth

PATIENCE_S = 20.0


async def test_a_file_is_uploaded_and_lua_is_evaluated(wear, tmp_path):
    mock, ear = await wear("sim:frame")
    host = Bluetooth()
    assert await host.connect() == mock.address
    try:
        script = tmp_path / "main.lua"
        script.write_text('print("it runs")\n' * 40)
        await host.upload_file(str(script))
        assert await host.send_lua("print(frame.battery_level())", await_print=True) == "87.0"
        await host.send_lua("frame.display.text('Hello', 1, 1);frame.display.show()")
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["Hello"])
    finally:
        await asyncio.wait_for(host.disconnect(), PATIENCE_S)
