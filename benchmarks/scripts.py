"""What text in other scripts costs: the CPU time of the child that draws it, and what stays in the
daemon after the child ended.
"""

import base64
import http.client
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import lens, process

BARS = {"first": 6.0, "later": 0.5}
"""Times the CPU of a bare `import PIL`; what goes over the air comes on top."""
PAGES = {
    "Arabic": (
        "يغادر القطار إلى الإسكندرية الساعة 15:30 من الرصيف 4",
        "اجتماع الغد مع المهندسة ليلى في مكتب شارع النيل",
        "الجو مشمس اليوم ودرجة الحرارة 31 مئوية، لا تنس الماء",
        "وصلت رسالة جديدة من أحمد: أراك عند المحطة بعد قليل",
        "أغلق الباب الخلفي قبل أن تغادر البيت من فضلك",
    ),
    "Chinese": (
        "开往杭州的火车15:30从4号站台发车，请提前十分钟到达",
        "明天上午九点在办公室开会，请带上你的护照和合同",
        "今天多云，最高气温二十一度，傍晚可能有小雨",
        "小李发来消息：我在图书馆门口等你，别忘了带书",
        "请在出门之前关好后门和窗户，谢谢",
    ),
}
"""Five rows each."""
GONE_S = 120.0


def measure(runs: int) -> list[tuple[str, float, str, float]]:
    """[(what, median ms of CPU, baseline, its median ms)]."""
    bare = _median([_bare_ms() for _ in range(runs + 1)])
    found = []
    for script, rows in PAGES.items():
        taken = [_pages_ms(rows) for _ in range(runs + 1)]
        for at, which in enumerate(BARS):
            value = _median([one[at] for one in taken])
            found.append((f"{which} page in {script}, CPU", value, "import PIL", bare))
    return found


def memory() -> tuple[float, float]:
    """Resident MiB of a daemon: before it shows other scripts, and when their child has ended."""
    with tempfile.TemporaryDirectory() as name, lens.mock() as radio:
        folder = Path(name)
        with process.daemon(folder, lens.CONFIG.format(radio=radio)) as (pid, _, _):
            wire = lens.UnixConnection(folder / "glassd" / "control.sock")
            lens.until_ready(wire)
            for n in range(5):
                _show(wire, f"number {n}")
            before = process.rss_mib(pid)
            for rows in PAGES.values():
                _show(wire, "\n".join(rows))
            assert len(process.family(pid)) > 1, "no child draws"
            until = time.monotonic() + GONE_S
            while len(process.family(pid)) > 1 and time.monotonic() < until:
                time.sleep(1.0)
            return before, process.rss_mib(pid)


def _show(wire: http.client.HTTPConnection, text: str) -> None:
    body = json.dumps({"tool": "glasses:show_text", "args": {"text": text}, "wait": "answer"})
    wire.request("POST", "/v1/call", body, {"Content-Type": "application/json"})
    answer = json.loads(wire.getresponse().read())
    assert answer["meta"]["delivery"] == "shown", answer
    time.sleep(1.6)  # a page stays as long before another replaces it


def _bare_ms() -> float:
    child = subprocess.Popen([sys.executable, "-c", "import PIL"], env=process.environment())
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1e3


def _pages_ms(rows: tuple[str, ...]) -> tuple[float, float]:
    """CPU of a new child up to its first page, and of each of ten pages after it."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "edge.display.image_worker", "60"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=process.environment(),
    )
    try:
        _draw(child, rows)
        first = process.cpu_s(child.pid) * 1e3
        for n in range(10):  # other text each time: nothing is drawn twice
            _draw(child, tuple(f"{row} {n}" for row in rows[n % 5 :] + rows[: n % 5]))
        return first, (process.cpu_s(child.pid) * 1e3 - first) / 10
    finally:
        child.kill()
        child.communicate()


def _draw(child: subprocess.Popen[bytes], rows: tuple[str, ...]) -> None:
    paragraphs = [{"text": row, "base": None} for row in rows]
    size = {"width": 576, "height": 27, "bpp": 1, "fonts": []}
    question = json.dumps({"do": "set", "paragraphs": paragraphs, **size}).encode()
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(struct.pack(">I", len(question)) + question)
    child.stdin.flush()
    (length,) = struct.unpack(">I", child.stdout.read(4))
    answer = json.loads(child.stdout.read(length))
    assert any(map(any, map(base64.b64decode, (r["pixels"] for s in answer["rows"] for r in s))))


def _median(taken: list[float]) -> float:
    """The first one filled the bytecode cache."""
    return statistics.median(taken[1:])
