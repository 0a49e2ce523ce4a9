"""Checks of the enrolment in a cloud: what it brought, and how long the certificate is valid.

`CloudSource` decides which cloud is used, as in the daemon.
"""

from functools import partial
from typing import Final

from edge.cloud.enrolment.client import Enrolment, EnrolmentOptions
from edge.cloud.enrolment.credentials import DamagedEnrolment, Enrolled, EnrolmentFiles
from edge.config import model as configuration
from edge.daemon.cloud_config import CloudSource
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, do, fail, ok, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.runtime.bus import Bus

SOON_S: Final = 14 * 86400.0
"""A certificate that ends sooner than this was not renewed when it should have been."""


class EnrolmentChecks(CheckGroup):
    """What an enrolment brought; it also finds out which broker and cloud are used, for the later
    checks.
    """

    async def enrolled(self) -> Finding:
        p = self._examined
        files = EnrolmentFiles(p.state_dir)
        self._choose(files, None)
        try:
            enrolled = await in_thread(files.load)
        except DamagedEnrolment as e:
            if "permission denied" in str(e).lower() and not self._machine.me.is_root:
                return self._not_allowed(f"look into {p.state_dir}")
            return fail(str(e), do("ask your cloud for a new code, then: glassd up CODE"))
        except PermissionError:
            return self._not_allowed(f"look into {p.state_dir}")
        self._choose(files, enrolled)
        return self._judge(enrolled)

    def _choose(self, files: EnrolmentFiles, enrolled: Enrolled | None) -> None:
        p, settings, env = self._examined, self._settings, self._examined.env
        enrolment = Enrolment(
            files,
            EnrolmentOptions("", self._machine.version, with_keys=False),
            bus=Bus(),
            clock=self._machine.clock,
            chance=lambda: 0.5,
        )
        enrolment.current = p.enrolled = enrolled
        source = partial(CloudSource, settings, env, enrolment, edge_id=p.edge_id)
        p.choice = source(secret=lambda file, name: configuration.read_secret(file, name, env))
        p.place = source(secret=lambda _file, _name: None).uplink()
        p.cloud_context = enrolment.cloud_context

    def _judge(self, enrolled: Enrolled | None) -> Finding:
        configured = self._settings.uplink.host
        if enrolled is None and configured:
            return ok("the configuration names the broker")
        if enrolled is None:
            return skip(
                "this edge belongs to no cloud; local tools work without",
                do("a code of your cloud makes it one's: glassd up CODE"),
            )
        facts = f"{enrolled.host}:{enrolled.port}, tenant {enrolled.tenant}, by {enrolled.how}"
        if configured:
            return ok(f"{facts}; but [uplink] host wins: {configured}")
        if not enrolled.ends:
            return ok(facts)
        left = enrolled.ends - self._machine.clock.wall()
        if left <= 0:
            return fail(
                f"{facts}: our certificate is past its end",
                do("ask your cloud for a new code, then: glassd up CODE"),
            )
        if left < SOON_S:
            return warn(
                f"{facts}: our certificate ends in {left / 86400:.1f} days",
                do("keep the daemon running and online: it renews by itself; else: glassd up CODE"),
            )
        return ok(f"{facts}, certificate good for {left / 86400:.0f} days")
