"""Applies new settings in a running daemon: cloud, broker, policy, log level, tools.

`core/config_changes.py` decides which settings can change without a restart.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from edge.calls.dependencies import CallLimits, CallPolicy
from edge.calls.orchestrator import Orchestrator
from edge.cloud.mqtt.client import MqttUplink
from edge.config.model import RateConfig, Settings
from edge.config.validators import BadSettings
from edge.core.policy import VoiceBudget
from edge.core.tools.selection import SelectionLimits
from edge.core.tools.selection_rules import UserRules
from edge.daemon import microphone
from edge.daemon.cloud_config import CloudSource
from edge.daemon.tool_services import ToolServices
from edge.daemon.user_tools import NotRead, UserTools
from edge.daemon.wearer_writer import WearerWriter
from edge.display.voice.tts import TextToSpeech
from edge.display.voice.volume import VoiceVolume
from edge.runtime import logs
from edge.tools.handlers import BadHandler
from edge.tools.local import LocalTools
from edge.tools.registry import RegistrySettings, ToolRegistry
from edge.tools.selection import SelectionSettings, ToolSelection
from tools_cache.api.tool import RateLimit

EVERY_TOOL: Final = ("*",)

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class SettingsApplier:
    """Applies new settings to all parts of the daemon that have some."""

    cloud: CloudSource
    uplink: MqttUplink
    registry: ToolRegistry
    calls: Orchestrator
    tools: LocalTools
    own: UserTools
    choice: ToolSelection
    services: ToolServices
    writer: WearerWriter
    voice: TextToSpeech
    volume: VoiceVolume
    listening: microphone.ListeningOnDemand
    recognisers: microphone.Recognisers

    def prepared(self, wanted: Settings) -> Callable[[], None]:
        """Read these settings' secrets; return what applies them. Raises `BadSettings`."""
        cloud = self.cloud.under(wanted)
        broker, source = cloud.uplink(), cloud.registry()

        before = self.cloud.given

        def take() -> None:
            self.cloud.take(wanted)
            self.registry.apply(registry(wanted))
            self.tools.configure(wanted.tool.values)
            tell_off(wanted)
            self.registry.follow(source)
            if broker != before:
                self.uplink.use(self.cloud.uplink())
            self.calls.adopt(limits(wanted), policy(wanted))
            self.choice.apply(selection(wanted))
            self.services.use(wanted)
            self.writer.use(wanted)
            self.voice.server = wanted.audio.server
            self.voice.preroll_ms = wanted.audio.preroll_ms
            self.volume.configure(wanted.audio.volume)
            again = self.recognisers.use(wanted)
            self.listening.use(wanted, again=again)
            logs.set_level(wanted.log.level)

        return take

    async def read_tools(self, wanted: Settings) -> str:
        """Read the owner's tools again, and this installation's if they are not locked; return what
        needs a restart, or "".
        """
        try:
            await self.own.reload(wanted)
        except NotRead as e:
            raise BadSettings(f"the tools of your own cannot be read: {e}") from None
        before = self.registry.installed.registry
        held = await self.registry.read_installed()
        if self.registry.installed.registry is not before:
            for tool in (tool for app in before.apps for tool in app.tools):
                with suppress(BadHandler):  # it names no folder, so nothing of it was loaded
                    self.tools.unload(tool)
        return held


def tell_off(settings: Settings) -> None:
    """Log the tools that their own settings switch off: each that is wrong, and how many others."""
    wrong = settings.tool.wrong
    for name, why in wrong.items():
        log.warning("tool %s is off: %s", name, why)
    if others := len(settings.tool.off) - len(wrong):
        log.info("%d tools are switched off or not configured; glassd tools --all says why", others)


def registry(settings: Settings) -> RegistrySettings:
    p = settings.policy
    disabled = p.disabled_tools if p.tools_enabled else EVERY_TOOL
    return RegistrySettings(disabled, settings.tool.off, settings.cloud.refresh_s)


def limits(settings: Settings) -> CallLimits:
    p = settings.policy
    voice = VoiceBudget(calls=p.voice_total_calls, retrievals=p.voice_retrieval_calls)
    return CallLimits(voice=voice, confirm_s=p.confirmation_s, turn_latency_ms=p.voice_latency_ms)


def policy(settings: Settings, **more: Any) -> CallPolicy:
    """Return the owner's policy; `more` are values from elsewhere."""
    p = settings.policy
    return CallPolicy(
        enabled=p.tools_enabled,
        user_id=settings.edge.user_id,
        strict_registry=p.strict_registry,
        rates=rates(p.rate_limits),
        cloud_may=p.cloud_may,
        yes_by_voice=settings.microphone.yes_by_voice,
        language=settings.spoken_language,
        **more,
    )


def voice(settings: Settings) -> TextToSpeech:
    audio = settings.audio
    return TextToSpeech(
        language=audio.voice,
        off="speech is switched off (audio.speech)" if audio.speech == "off" else "",
        volume=audio.volume,
        server=audio.server,
        preroll_ms=audio.preroll_ms,
    )


def selection(settings: Settings) -> SelectionSettings:
    t, users = settings.tools, settings.policy.users
    return SelectionSettings(
        settings.edge.user_id,
        SelectionLimits(t.offered_max, t.idle_turns),
        t.essential,
        settings.policy.cloud_may,
        {name: UserRules(u.disabled_tools, rates(u.rate_limits)) for name, u in users.items()},
    )


def rates(configured: Mapping[str, RateConfig]) -> dict[str, RateLimit]:
    return {name: RateLimit(rate.calls, rate.window) for name, rate in configured.items()}
