"""What is measured is what an installed daemon does."""

import subprocess
import sys

from benchmarks import process


def test_measured_processes_use_compiled_code(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    process.environment.cache_clear()
    code = "import sys, edge.daemon.app; print(sys.dont_write_bytecode)"
    ran = subprocess.run(
        [sys.executable, "-v", "-c", code],
        env=process.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    process.environment.cache_clear()
    assert ran.stdout.strip() == "False"
    assert "# created" not in ran.stderr, "compiled while it was measured"


def test_the_processor_time_of_a_process_is_fine_grained():
    child = subprocess.Popen(
        [sys.executable, "-c", "print('started', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout.readline() == b"started\n", "before that it has used nothing"
        used = process.cpu_s(child.pid)
        assert 0 < used < 60
        assert round(used * 100, 4) % 1, "not in whole ticks of 10 ms"
    finally:
        child.communicate(b"\n")
