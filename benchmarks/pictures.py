"""A picture on simulated lenses, from the control API: how long its caller waits, what the daemon
and its children compute for it, and how long others wait meanwhile. Without radio and daemon: how
long fitting it takes, when the child process that does so is there already. At the end the packets
of each family's codec: `picture_packets`.

The floor is Pillow alone: the picture decoded, fitted and dithered in this process.
"""

import asyncio
import base64
import io
import json
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks import lens, picture_packets, process
from benchmarks.growth import longest_wait
from benchmarks.table import Lines, Row, not_measured
from benchmarks.usage import Usage
from edge.display.images import LensImages
from edge.ports import GlassesStatus
from firmware_bridge.capabilities import Capabilities, Origin

PICTURES = 8
PAUSE_S = 0.5
"""Before each: for how long the page before stays is policy, not cost."""
LARGE = """\
[glasses.capabilities]
"display.width" = 576
"display.height" = 288
"display.bpp" = 4
"""
MODELS = {
    "Even G1, 576×136, 1 bit": ("sim:even_g1", (576, 136), 1, ""),
    "a lens of 576×288, 4 bits": (
        "mock:display",
        (576, 288),
        4,
        LARGE,
    ),
}
"""What is measured: model, pixels, bits of a pixel, and what the configuration says of it."""


def measure() -> Lines:
    if find_spec("PIL") is None:
        yield not_measured("pictures", "pip install 'glassd[images]'")
        return
    for what, (model, size, bits, more) in MODELS.items():
        picture = _jpeg()
        alone = statistics.median(_pillow_ms(picture, size, bits) for _ in range(PICTURES))
        fitting = asyncio.run(_fitting_ms(picture, size, bits))
        yield Row(f"fitting a picture, {what}", fitting, "ms", "Pillow alone", alone)
        with tempfile.TemporaryDirectory() as name, lens.mock(model) as radio:
            folder = Path(name)
            config = lens.CONFIG.format(radio=radio) + more
            with process.daemon(folder, config) as (pid, _, _):
                yield from _shown(what, folder, Usage(pid, folder / "state"), picture, alone)
    yield from picture_packets.measure()


def _shown(what: str, folder: Path, usage: Usage, picture: str, alone: float) -> Lines:
    control = folder / "glassd" / "control.sock"
    wire = lens.UnixConnection(control)
    lens.until_ready(wire)
    first = _show(wire, picture)
    with usage.of(PICTURES):
        taken = [_show(wire, picture) for _ in range(PICTURES)]
    yield Row(f"picture, {what}", statistics.median(taken), "ms", "Pillow alone", alone)
    yield Row(f"  picture, {what}, the first one", first, "ms", "Pillow alone", alone)
    yield from usage.rows(f"picture, {what}")
    wire.request("GET", "/v1/status")
    apart = json.loads(wire.getresponse().read())["glasses"]["skew_ms"]
    if apart is not None:
        yield Row(f"  picture, {what}, both sides apart", apart, "ms")
    idle = longest_wait(control, lambda: time.sleep(PAUSE_S), times=PICTURES)
    busy = longest_wait(control, lambda: _show(wire, picture), times=PICTURES)
    yield Row(f"  picture, {what}, longest wait of others", busy, "ms", "without it", idle)


def _show(wire: lens.UnixConnection, picture: str) -> float:
    args = {"image": picture, "alt": "a test picture", "duration_s": 0.1}
    body = json.dumps({"tool": "glasses:show_image", "args": args, "wait": "answer"})
    time.sleep(PAUSE_S)
    began = time.perf_counter()
    wire.request("POST", "/v1/call", body, {"Content-Type": "application/json"})
    answer = json.loads(wire.getresponse().read())
    took = (time.perf_counter() - began) * 1e3
    delivery = answer["meta"]["delivery"]
    if isinstance(delivery, dict):  # the simulated lens is lower than what is configured: clipped
        delivery = delivery["state"]
    assert delivery in ("shown", "acknowledged"), f"the picture is not on the lens: {delivery}"
    return took


async def _fitting_ms(picture: str, size: tuple[int, int], bits: int) -> float:
    """Return the median ms that the daemon's own call takes, after a first one."""
    facts = {"display.width": size[0], "display.height": size[1], "display.bpp": bits}
    known = Capabilities.of(
        "bench", {"display.bitmap": True, **facts}, origin=Origin.CATALOGUE, now=0.0
    )
    images, taken = LensImages(lambda: GlassesStatus(ready=True, capabilities=known)), []
    for _ in range(PICTURES + 1):
        began = time.perf_counter()
        await images.fitted(picture)
        taken.append((time.perf_counter() - began) * 1e3)
    if hasattr(images, "close"):  # a checkout to compare with may have a child for each picture
        await images.close()
    return statistics.median(taken[1:])


def _jpeg() -> str:
    """Return a picture of 1600×1200 with gradients and edges, as base64."""
    from PIL import Image, ImageDraw

    picture = Image.radial_gradient("L").resize((1600, 1200)).convert("RGB")
    drawn = ImageDraw.Draw(picture)
    for n in range(8):
        drawn.line((n * 200, 0, 1600 - n * 200, 1200), fill=(n * 30, 255 - n * 30, 128), width=3)
    out = io.BytesIO()
    picture.save(out, format="JPEG", quality=40)
    return base64.b64encode(out.getvalue()).decode()


def _pillow_ms(picture: str, size: tuple[int, int], bits: int) -> float:
    from PIL import Image

    raw, began = base64.b64decode(picture), time.perf_counter()
    read = Image.open(io.BytesIO(raw))
    read.draft("L", (size[0] * 2, size[1] * 2))
    grey = read.convert("L")
    grey.thumbnail(size)
    if bits == 1:
        grey.convert("1").tobytes()
    else:
        grey.quantize(1 << bits, dither=Image.Dither.FLOYDSTEINBERG).tobytes()
    return (time.perf_counter() - began) * 1e3
