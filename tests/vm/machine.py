"""A running guest: woken from its frozen boot in seconds, asked over a serial port, thrown away at
the end.

Knows QEMU and the agent's lines; has never heard of glasses. Nothing a guest writes outlives it.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from tests.vm.image import Image, NoMachine, blank

log = logging.getLogger(__name__)

BOOT_S = 900.0
"""A cold boot takes 15 to 40 s emulated; a machine that is busy with other things, several
times that.
"""
WAKE_S = 180.0
MEMORY_MIB = 768
KERNEL = (
    "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable "
    "no_timer_check audit=0 apparmor=0 selinux=0 "
    "random.trust_cpu=on cryptomgr.notests systemd.show_status=0"
)
"""Emulated, each of what these leave out costs seconds of boot (self-tests of the crypto API
more than all else).
"""


def accelerator() -> str:
    """KVM only on a processor that has it: /dev/kvm alone proves nothing where the host is
    itself a guest.
    """
    able = any(flag in Path("/proc/cpuinfo").read_text().split() for flag in ("vmx", "svm"))
    return "kvm" if able and os.access("/dev/kvm", os.W_OK) else "tcg"


class Machine:
    """One guest's life. `ask` answers with what the agent said; `hci` is the path of the
    adapter's socket.
    """

    def __init__(self, image: Image, payload: Path) -> None:
        self._image = image
        self._payload = payload
        self._folder = Path(tempfile.mkdtemp(prefix="glassvm-"))
        self.hci = self._folder / "hci.sock"
        self.console = self._folder / "console.log"
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading: asyncio.Task[None] | None = None

    # -------------------------------------------------------------- life

    async def wake(self) -> None:
        """Restore the frozen boot (made now when there is none) and start the agent. Raises
        `NoMachine`.
        """
        if not self._frozen.exists():
            await freeze(self._image)
        await self._start(self._overlay, "snapshot=on", "-incoming", f"exec:cat {self._frozen}")
        reader = await self._connect("ctl.sock")
        self._say({"now": time.time()})
        await self._line(reader, "awake", WAKE_S)
        self._reading = asyncio.create_task(self._read(reader))

    async def boot(self) -> None:
        """Boot for good, writing to the overlay, until everything that starts has started."""
        await self._start(self._overlay, "snapshot=off")
        await self._line(await self._connect("ctl.sock"), "booted", BOOT_S)

    async def close(self) -> None:
        """Pull the plug. Idempotent."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        if self._writer is not None:
            self._writer.close()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._let_go("the guest was switched off")
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _overlay(self) -> Path:
        return self._image.folder / f"boot-{accelerator()}.qcow2"

    @property
    def _frozen(self) -> Path:
        return self._image.folder / f"state-{accelerator()}"

    async def _start(self, disk: Path, snapshot: str, *more: str) -> None:
        with (self._folder / "qemu.log").open("wb") as said:
            self._process = await asyncio.create_subprocess_exec(
                "setpriv",
                "--pdeathsig",
                "KILL",
                *self._argv(disk, snapshot),
                *more,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def _argv(self, disk: Path, snapshot: str) -> list[str]:
        kind = accelerator()
        speed = (
            ["-accel", "kvm", "-cpu", "host"]
            if kind == "kvm"
            else ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Nehalem"]
        )
        ports = [
            word
            for name in ("ctl", "hci")
            for word in (
                "-chardev",
                f"socket,id={name},path={self._folder / (name + '.sock')},server=on,wait=off",
                "-device",
                f"virtserialport,chardev={name},name=glassd.{name}",
            )
        ]
        return [
            "qemu-system-x86_64",
            *speed,
            "-machine",
            "q35",
            "-smp",
            "2",
            "-m",
            str(MEMORY_MIB),
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            "-kernel",
            str(self._image.folder / "vmlinuz"),
            "-initrd",
            str(self._image.folder / "initrd"),
            "-append",
            KERNEL,
            "-serial",
            f"file:{self.console}",
            "-drive",
            f"file={disk},if=none,id=root,format=qcow2,{snapshot},cache=unsafe",
            "-device",
            "virtio-blk-pci,drive=root",
            "-drive",
            f"file={self._payload},if=none,id=payload,format=raw,snapshot=on,cache=unsafe",
            "-device",
            "virtio-blk-pci,drive=payload",
            "-device",
            "virtio-rng-pci",
            "-device",
            "vmgenid,guid=auto",
            "-device",
            "virtio-serial-pci",
            *ports,
            "-qmp",
            f"unix:{self._folder / 'qmp.sock'},server=on,wait=off",
        ]

    async def _connect(self, name: str) -> asyncio.StreamReader:
        path = self._folder / name
        reader, writer = await self._dial(path)
        if name == "ctl.sock":
            self._writer = writer
        return reader

    async def _dial(self, path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert self._process is not None
        async with asyncio.timeout(WAKE_S):
            while True:
                if self._process.returncode is not None:
                    raise NoMachine(
                        "QEMU ended: "
                        f"{(self._folder / 'qemu.log').read_text(errors='replace')[-500:]}"
                    )
                with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                    return await asyncio.open_unix_connection(str(path), limit=8 << 20)
                await asyncio.sleep(0.02)

    async def _line(self, reader: asyncio.StreamReader, word: str, within_s: float) -> None:
        """Wait until the guest says `word`."""
        try:
            async with asyncio.timeout(within_s):
                while word not in (json.loads(await reader.readline() or b'{"word": 0}') or {}):
                    await asyncio.sleep(0)
        except (TimeoutError, ValueError) as error:
            raise NoMachine(
                f"the guest never said {word!r}: {error!r}; its console: {self.console_tail()}"
            ) from None

    def console_tail(self, lines: int = 25) -> str:
        if not self.console.exists():
            return ""
        return "\n".join(self.console.read_text(errors="replace").splitlines()[-lines:])

    # -------------------------------------------------------------- asking

    async def ask(self, do: str, *, within_s: float = 60.0, **request: Any) -> dict[str, Any]:
        """One request to the agent. Raises AssertionError when there is no answer in time, or
        the agent could not do it.
        """
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._say({"id": number, "do": do, **request})
            async with asyncio.timeout(within_s):
                reply = await answer
        except TimeoutError:
            raise AssertionError(
                f"the guest did not answer {do} {request} in {within_s} "
                f"s; console: {self.console_tail()}"
            ) from None
        finally:
            del self._waiting[number]
        assert "error" not in reply, f"{do} {request}: {reply['error']}"
        return reply

    async def run(
        self, command: str, *, within_s: float = 180.0, give: str = ""
    ) -> tuple[int, str]:
        """Run a shell command as root: exit code and all it said."""
        reply = await self.ask(
            "run", within_s=within_s + 10, command=command, timeout=within_s, input=give
        )
        return reply["code"], reply["out"]

    async def must(self, command: str, *, within_s: float = 180.0, give: str = "") -> str:
        """Run a shell command that has to succeed."""
        code, out = await self.run(command, within_s=within_s, give=give)
        assert code == 0, f"{command} ended with {code}: {out[-2000:]}"
        return out

    def _say(self, message: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            reply = json.loads(line)
            answer = self._waiting.get(reply.get("id", 0))
            if answer is not None and not answer.done():
                answer.set_result(reply)
        self._let_go("the guest is gone")

    def _let_go(self, why: str) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result({"error": why})

    # -------------------------------------------------------------- freezing

    async def save(self, target: Path) -> None:
        """Write memory and devices to a file, and end."""
        reader, writer = await self._dial(self._folder / "qmp.sock")

        async def command(name: str, **arguments: Any) -> Any:
            writer.write(json.dumps({"execute": name, "arguments": arguments}).encode())
            while "return" not in (reply := json.loads(await reader.readline())):
                if "error" in reply:
                    raise NoMachine(f"{name}: {reply['error']}")
            return reply["return"]

        await reader.readline()
        await command("qmp_capabilities")
        await command("migrate", uri=f"exec:cat > {target}")
        async with asyncio.timeout(BOOT_S):
            while (state := (await command("query-migrate")).get("status")) != "completed":
                if state == "failed":
                    raise NoMachine("QEMU could not save the machine")
                await asyncio.sleep(0.2)
        writer.write(b'{"execute": "quit"}')
        assert self._process is not None
        await self._process.wait()
        writer.close()


async def freeze(image: Image) -> None:
    """Boot once and save the machine as it is then; every guest of this image begins there."""
    kind = accelerator()
    overlay, state = image.folder / f"boot-{kind}.qcow2", image.folder / f"state-{kind}"
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            "qemu-img",
            "create",
            "-q",
            "-f",
            "qcow2",
            "-b",
            str(image.folder / "root.img"),
            "-F",
            "raw",
            str(overlay),
        )
        if await process.wait() != 0:
            raise NoMachine("qemu-img cannot make the overlay")
        machine = Machine(image, blank(Path(folder)))
        try:
            began = time.monotonic()
            await machine.boot()
            await machine.save(state.with_suffix(".part"))
            state.with_suffix(".part").rename(state)
            log.warning(
                "the %s guest booted and froze in %.0f s", image.suite, time.monotonic() - began
            )
        finally:
            await machine.close()


@contextlib.asynccontextmanager
async def guest(
    image: Image, payload: Path, *, told: Callable[[str], None] = lambda _line: None
) -> AsyncIterator[Machine]:
    """A fresh guest, awake; switched off at the end."""
    machine = Machine(image, payload)
    try:
        began = time.monotonic()
        await machine.wake()
        told(f"{image.suite} guest awake in {time.monotonic() - began:.1f} s ({accelerator()})")
        yield machine
    finally:
        await machine.close()
