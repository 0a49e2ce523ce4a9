"""Which changed settings a running daemon applies at once, and which need a restart.

A key that is not listed here needs a restart, so that a new key is never ignored silently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import asdict, replace

LIVE: Final = frozenset(
    """
    cloud.url cloud.token_file cloud.refresh_s
    uplink.host uplink.port uplink.tls uplink.ca_file uplink.cert_file uplink.key_file
    uplink.username uplink.password_file uplink.pool uplink.keepalive_s uplink.tcp_user_timeout_s
    uplink.session_expiry_s uplink.will_delay_s
    policy.tools_enabled policy.voice_total_calls policy.voice_retrieval_calls
    policy.voice_latency_ms policy.confirmation_s policy.cloud_may policy.disabled_tools
    policy.rate_limits policy.strict_registry policy.users
    tools.offered_max tools.idle_turns tools.essential tools.folders tools.packages tools.env
    log.level mcp.servers kb.folder wearer.locale wearer.timezone
    microphone.allow microphone.recogniser microphone.model microphone.language
    microphone.push_to_talk microphone.wake_phrase microphone.yes_by_voice
    audio.volume audio.server audio.preroll_ms
    calendar.folder calendar.url calendar.username calendar.password_file calendar.email
    calendar.meeting_url
    """.split()
)
"""Keys that apply at once: from the next call, connection, or request to the cloud."""


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """`effective`: the settings active afterwards; `live` and `restart`: the keys that changed."""

    effective: Any
    live: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def plan(now: Any, wanted: Any) -> ReloadPlan:
    """Compare the active settings with those that were read."""
    before = _flat(now)
    changed = sorted(key for key, value in _flat(wanted).items() if value != before.get(key))
    live = tuple(key for key in changed if key in LIVE)
    effective = replace(now, source=wanted.source, tool=wanted.tool)
    for section in {key.partition(".")[0] for key in live}:
        fresh = getattr(wanted, section)
        keys = {key.partition(".")[2] for key in LIVE if key.startswith(f"{section}.")}
        taken = {name: getattr(fresh, name) for name in keys}
        effective = replace(effective, **{section: replace(getattr(effective, section), **taken)})
    live += ("tool",) if wanted.tool != now.tool else ()
    return ReloadPlan(effective, live, tuple(key for key in changed if key not in LIVE))


def _flat(settings: Any) -> Mapping[str, Any]:
    return {
        f"{name}.{key}": value
        for name, section in settings.sections().items()
        for key, value in asdict(section).items()
    }
