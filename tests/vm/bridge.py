"""/dev/vhci at one end, the host's virtual controller at the other. Standard library only; knows
HCI's framing, not its meaning.

Told `in` on stdin it makes the kernel an adapter and says its name; told `out` it takes it away, as
if a dongle were pulled. The stream from the host is cut into packets all the time, also while there
is no adapter, so that framing is never lost.
"""

import contextlib
import os
import selectors
import sys

HOST = "/dev/virtio-ports/glassd.hci"
VENDOR = b"\xff\x00"
"""To vhci: make a controller of the primary kind; its answer carries the number of the new hciN."""
HEADERS = {1: (3, 1), 2: (3, 2), 3: (3, 1), 4: (2, 1), 5: (3, 2)}
"""Packet type → offset and size of the length field, which is the last of the header."""


def cut(pending):
    """Take whole packets off the front of `pending`; the kernel wants exactly one a write."""
    while len(pending) > 4:
        offset, size = HEADERS[pending[0]]
        length = int.from_bytes(pending[offset : offset + size], "little")
        end = offset + size + (length & 0x3FFF if pending[0] == 5 else length)
        if len(pending) < end:
            return
        yield bytes(pending[:end])
        del pending[:end]


class Bridge:
    """Both ends, and who is plugged in."""

    def __init__(self):
        self.host = os.open(HOST, os.O_RDWR)
        self.kernel = -1
        self.pending = bytearray()
        self.ears = selectors.DefaultSelector()
        self.ears.register(self.host, selectors.EVENT_READ, self.from_host)
        self.ears.register(sys.stdin, selectors.EVENT_READ, self.told)

    def run(self):
        while True:
            for key, _ in self.ears.select():
                key.data()

    def told(self):
        word = sys.stdin.readline().strip()
        if not word:
            raise SystemExit
        if self.kernel >= 0:
            self.ears.unregister(self.kernel)
            os.close(self.kernel)
            self.kernel = -1
        if word == "in":
            self.kernel = os.open("/dev/vhci", os.O_RDWR)
            os.write(self.kernel, VENDOR)
            answer = os.read(self.kernel, 64)
            self.ears.register(self.kernel, selectors.EVENT_READ, self.from_kernel)
            word = f"hci{int.from_bytes(answer[2:4], 'little')}"
        print(word, flush=True)

    def from_host(self):
        self.pending += os.read(self.host, 65536)
        for packet in cut(self.pending):
            if self.kernel >= 0:
                with contextlib.suppress(
                    OSError
                ):  # an adapter that is switched off takes nothing, as on hardware
                    os.write(self.kernel, packet)

    def from_kernel(self):
        packet = os.read(self.kernel, 4096)
        while packet:
            packet = packet[os.write(self.host, packet) :]


Bridge().run()
