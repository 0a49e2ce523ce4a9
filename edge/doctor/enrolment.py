"""Checks of the enrolment in a cloud: what it brought, and how long the certificate is valid.

`CloudSource` decides which cloud is used, as in the daemon.
"""

from typing import Final

from edge.cloud.enrolment.client import Enrolment
from edge.cloud.enrolment.credentials import DamagedEnrolment, Enrolled, EnrolmentFiles
from edge.config import model as configuration
from edge.daemon.cloud_config import CloudSource
from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check, Finding, do, fail, ok, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.runtime.bus import Bus

SOON_S: Final = 14 * 86400.0
"""A certificate that ends sooner than this was not renewed when it should have been."""


class EnrolmentChecks:
    """The check of this layer; it also finds out which broker and cloud are used, for the
    rungs above.
    """

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(
                id="enrolment",
                layer="broker",
                title="enrolment",
                examine=self._enrolled,
                needs=("config",),
                after=("daemon",),
            ),
        )

    async def _enrolled(self) -> Finding:
        p = self._patient
        assert p.settings is not None
        files = EnrolmentFiles(p.state_dir)
        self._choose(files, None)
        try:
            kept = await in_thread(files.load)
        except DamagedEnrolment as e:
            if "permission denied" in str(e).lower() and not self._machine.me.is_root:
                return skip(
                    f"you may not look into {p.state_dir}", self._machine.as_root("glassd doctor")
                )
            return fail(str(e), do("ask your cloud for a new code, then: glassd up CODE"))
        except PermissionError:
            return skip(
                f"you may not look into {p.state_dir}", self._machine.as_root("glassd doctor")
            )
        self._choose(files, kept)
        return self._judge(kept)

    def _choose(self, files: EnrolmentFiles, kept: Enrolled | None) -> None:
        p = self._patient
        assert p.settings is not None
        enrolment = Enrolment(
            files,
            edge_id="",
            version=self._machine.version,
            bus=Bus(),
            clock=self._machine.clock,
            chance=lambda: 0.5,
            with_keys=False,
        )
        enrolment.current = p.enrolled = kept
        settings, env = p.settings, p.env
        p.choice = CloudSource(
            settings,
            env,
            enrolment,
            edge_id=p.edge_id,
            secret=lambda file, name: configuration.read_secret(file, name, env),
        )
        p.place = CloudSource(
            settings, env, enrolment, edge_id=p.edge_id, secret=lambda _file, _name: None
        ).uplink()
        p.cloud_context = enrolment.cloud_context

    def _judge(self, kept: Enrolled | None) -> Finding:
        assert self._patient.settings is not None
        configured = self._patient.settings.uplink.host
        if kept is None:
            return (
                ok("the configuration names the broker")
                if configured
                else skip(
                    "this edge belongs to no cloud; local tools work without",
                    do("a code of your cloud makes it one's: glassd up CODE"),
                )
            )
        said = f"{kept.host}:{kept.port}, tenant {kept.tenant}, by {kept.how}"
        if configured:
            return ok(f"{said}; but [uplink] host wins: {configured}")
        left = kept.ends - self._machine.clock.wall() if kept.ends else None
        if left is not None and left <= 0:
            return fail(
                f"{said}: our certificate is past its end",
                do("ask your cloud for a new code, then: glassd up CODE"),
            )
        if left is not None and left < SOON_S:
            return warn(
                f"{said}: our certificate ends in {left / 86400:.1f} days",
                do("keep the daemon running and online: it renews by itself; else: glassd up CODE"),
            )
        return ok(
            said + (f", certificate good for {left / 86400:.0f} days" if left is not None else "")
        )
