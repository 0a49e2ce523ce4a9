"""Puts glassd into a guest: what `make install` made for it, its user, its settings; and what
the doctor says to do.
"""

from tests.vm.machine import Machine

STEPS = (
    "mkdir -p /opt/glassd && mount --bind /payload/tree/opt/glassd /opt/glassd",
    "cp -a /payload/tree/etc /payload/tree/usr /",
    "systemd-sysusers /etc/sysusers.d/glassd.conf",
    "sysctl --quiet net.core.rmem_default=8388608",
    "systemctl daemon-reload && systemctl reload dbus && systemctl restart bluetooth",
)
"""The venv stays on the second disk, which is read-only: copying it would take an emulated
machine a minute.
"""


async def install(machine: Machine) -> None:
    for step in STEPS:
        await machine.must(step, within_s=120)
