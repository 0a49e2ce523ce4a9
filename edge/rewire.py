"""Puts another configuration in force in the rooms of a running daemon: cloud, broker, policy, log
level, tools in development.

Part of the roof, beside `app.py`. Refuses to read the configuration and to decide what may change
live (`core/reload.py` does).
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from edge import logs
from edge.cloud_choice import CloudChoice
from edge.core.loader import Limits as Offers
from edge.core.loader_rules import UserRules
from edge.core.policy import VoiceBudget
from edge.lending import Lending
from edge.local_tools import LocalTools
from edge.orchestrator import Limits, Orchestrator, Policy
from edge.own_tools import NotRead, OwnTools
from edge.registry_cache import RegistryCache
from edge.settings import Rate, Settings
from edge.settings_rules import BadSettings
from edge.tool_choice import ToolChoice
from edge.tool_loader import BadHandler
from edge.uplink.service import MqttUplink
from tools_cache.tool import RateLimit

EVERY_TOOL: Final = ("*",)

log = logging.getLogger(__name__)


class Rewire:
    """Puts new settings in force in every part of the daemon that has some."""

    def __init__(
        self,
        *,
        cloud: CloudChoice,
        uplink: MqttUplink,
        registry: RegistryCache,
        calls: Orchestrator,
        tools: LocalTools,
        own: OwnTools,
        choice: ToolChoice,
        lending: Lending,
    ) -> None:
        self._cloud = cloud
        self._uplink = uplink
        self._registry = registry
        self._calls = calls
        self._tools = tools
        self._own = own
        self._choice = choice
        self._lending = lending

    def prepared(self, wanted: Settings) -> Callable[[], None]:
        """Read secrets and certificates of these settings; gives what puts them in force.
        Raises `BadSettings`.
        """
        cloud = self._cloud.under(wanted)
        broker, source = cloud.uplink(), cloud.registry()

        before = self._cloud.given

        def take() -> None:
            self._cloud.take(wanted)
            self._registry.heed(
                disabled=disabled(wanted), refresh_s=wanted.cloud.refresh_s, off=wanted.tool.off
            )
            self._tools.configure(wanted.tool.values)
            tell_off(wanted)
            self._registry.follow(source)
            if broker != before:
                self._uplink.use(self._cloud.uplink())
            self._calls.adopt(limits(wanted), policy(wanted))
            self._choice.adopt(**choice(wanted))
            self._lending.use(wanted)
            logs.set_level(wanted.log.level)

        return take

    async def read_tools(self, wanted: Settings) -> str:
        """Read the owner's own tools anew; in development those of this installation too, with
        their handlers: else say whether they changed.
        """
        try:
            await self._own.reload(wanted)
        except NotRead as e:
            raise BadSettings(f"the tools of your own cannot be read: {e}") from None
        before = self._registry.installed.registry
        held = await self._registry.read_installed()
        if self._registry.installed.registry is not before:
            for tool in (tool for app in before.apps for tool in app.tools):
                with suppress(BadHandler):  # it names no folder, so nothing of it was loaded
                    self._tools.unload(tool)
        return held


def tell_off(settings: Settings) -> None:
    """Say which tools their own settings keep off: one that is wrong should not be found out by
    calling it.
    """
    for name, why in settings.tool.off.items():
        log.log(
            logging.WARNING if name in settings.tool.wrong else logging.INFO,
            "tool %s is off: %s",
            name,
            why,
        )


def disabled(settings: Settings) -> tuple[str, ...]:
    """Name the tools that the owner does not want."""
    return settings.policy.disabled_tools if settings.policy.tools_enabled else EVERY_TOOL


def limits(settings: Settings) -> Limits:
    p = settings.policy
    voice = VoiceBudget(calls=p.voice_total_calls, retrievals=p.voice_retrieval_calls)
    return Limits(voice=voice, confirm_s=p.confirmation_s, turn_latency_ms=p.voice_latency_ms)


def policy(settings: Settings, **more: Any) -> Policy:
    """Give the owner's policy; `more` are what does not stand in the settings."""
    p = settings.policy
    return Policy(
        enabled=p.tools_enabled,
        user_id=settings.edge.user_id,
        strict_registry=p.strict_registry,
        rates=rates(p.rate_limits),
        cloud_may=p.cloud_may,
        **more,
    )


def choice(settings: Settings) -> dict[str, Any]:
    """What of the settings decides which tools are offered, and to whom they are denied."""
    t, users = settings.tools, settings.policy.users
    return {
        "limits": Offers(t.offered_max, t.idle_turns),
        "essential": t.essential,
        "cloud_may": settings.policy.cloud_may,
        "users": {
            user: UserRules(said.disabled_tools, rates(said.rate_limits))
            for user, said in users.items()
        },
    }


def rates(configured: Mapping[str, Rate]) -> dict[str, RateLimit]:
    return {name: RateLimit(rate.calls, rate.window) for name, rate in configured.items()}
