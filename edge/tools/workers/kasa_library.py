"""Speaks to Kasa and Tapo devices with python-kasa; imported in the child process alone.

Devices are strangers: each answer has a size limit, each device a deadline, and HTTP goes to the
address that was asked and nowhere else. A password is sent to no device but those the owner listed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from kasa import (
    AuthenticationError,
    Credentials,
    Device,
    DeviceConfig,
    DeviceConnectionParameters,
    DeviceEncryptionType,
    DeviceFamily,
    Discover,
    KasaException,
    LightState,
    Module,
    UnsupportedDeviceError,
)
from kasa.device_factory import (
    get_device_class_from_family,
    get_device_class_from_sys_info,
    get_protocol,
)
from kasa.protocols import IotProtocol
from kasa.smart import SmartDevice
from kasa.transports import XorTransport

from firmware_bridge.deadlines import timeout
from tools_cache.errors import ErrorCode
from tools_cache.everyday.kasa_devices import is_at_home

BROADCAST: Final = "255.255.255.255"
SEARCH_S: Final = 2
"""How long answers to a search are awaited; whole seconds, as the library takes them."""
QUERY_S: Final = 2
"""How long one answer of a device is awaited."""
DEVICE_S: Final = 3.5
"""How long all of one device may take. Asked, searched for and asked again: 9 s."""
MAX_DEVICES: Final = 100
MAX_CHILDREN: Final = 32
MAX_NAME: Final = 64
MAX_ANSWER: Final = 256 * 1024
"""Bytes of one answer of a device; the longest of real ones have about 16 KiB."""
AT_ONCE: Final = 16
"""Devices that are asked at the same time."""
UNREACHABLE: Final = "does not answer"
UNREADABLE: Final = "gives an answer that is not understood"
MAX_ID: Final = 120
_FAMILIES: Final = frozenset(
    {
        DeviceFamily.IotSmartPlugSwitch,
        DeviceFamily.IotSmartBulb,
        DeviceFamily.SmartKasaPlug,
        DeviceFamily.SmartKasaSwitch,
        DeviceFamily.SmartTapoPlug,
        DeviceFamily.SmartTapoBulb,
        DeviceFamily.SmartTapoSwitch,
        DeviceFamily.SmartTapoHub,
        DeviceFamily.SmartKasaHub,
    }
)
"""Plugs, switches, lights, and hubs that may have some; no cameras, bells or robots."""
_Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Found:
    """A device that answered a search, not asked any further yet."""

    host: str
    mac: str
    connection: Mapping[str, Any]


class _Failed(Exception):
    """One device did not do it. `problem` completes a sentence that begins with its name."""

    def __init__(self, code: ErrorCode, problem: str, *, fix: str = "") -> None:
        super().__init__(problem)
        self.code, self.problem, self.fix = code, problem, fix

    def to_json(self, *, sent: bool = False) -> _Record:
        """`sent`: a change was on its way already."""
        return {"code": self.code.value, "text": self.problem, "fix": self.fix, "sent": sent}


class Home:
    """The devices of one home, asked with one account. `hosts`: all there are; none: any."""

    def __init__(self, hosts: Sequence[str], username: str, password: str) -> None:
        logging.getLogger("kasa").setLevel(logging.CRITICAL + 1)  # would write names of devices
        self._hosts = tuple(hosts)
        self._account = Credentials(username, password) if username else None
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def discover(self) -> _Record:
        """Return `{devices, problems}`: a record of each device and of each plug of a strip, and
        of each device that cannot be used `{host, code, text}`.
        """
        _ignore_callback_errors()
        found = await self._search()
        tried = await asyncio.gather(*map(self._read, found))
        devices = [record for records, _ in tried for record in records]
        problems = [problem for _, problem in tried if problem]
        silent = [host for host in self._hosts if host not in {each.host for each in found}]
        problems += [
            {"host": host, "code": ErrorCode.NETWORK_ERROR.value, "text": f"{host} {UNREACHABLE}"}
            for host in silent
        ]
        return {"devices": devices, "problems": problems}

    async def apply(self, items: Sequence[Mapping[str, Any]]) -> _Record:
        """Read each of the devices, and change those whose item has `on` or `brightness`. Return
        `{results}` in their order: `{host, connection, on, brightness, was, changed}` or `{error}`.

        A device that does not answer at its address is searched for once: addresses change.
        """
        _ignore_callback_errors()
        results: dict[int, _Record] = {}
        groups: dict[tuple[str, str], list[int]] = {}
        for number, item in enumerate(items):
            groups.setdefault((item["mac"], item["host"]), []).append(number)

        async def each(numbers: list[int], moved: _Found | None = None) -> None:
            wanted = [items[number] for number in numbers]
            answers = await self._apply_to_one(wanted, moved)
            results.update(zip(numbers, answers, strict=True))

        await asyncio.gather(*map(each, groups.values()))
        lost = {
            mac: numbers
            for (mac, _), numbers in groups.items()
            if all(_is_lost(results[number]) for number in numbers)
        }
        if lost:
            moved = {one.mac: one for one in await self._search() if one.mac in lost}
            await asyncio.gather(*(each(lost[mac], one) for mac, one in moved.items()))
        return {"results": [results[number] for number in range(len(items))]}

    # -------------------------------------------------------------- search

    async def _search(self) -> list[_Found]:
        if not self._hosts:
            try:
                answered = await Discover.discover(
                    target=BROADCAST, discovery_timeout=SEARCH_S, credentials=self._account
                )
            except (KasaException, OSError, TimeoutError):
                return []
            found = [_found(device) for device in [*answered.values()][:MAX_DEVICES]]
        else:
            found = await asyncio.gather(*map(self._search_one, self._hosts))
        return [one for one in found if one is not None and is_at_home(one.host)]

    async def _search_one(self, host: str) -> _Found | None:
        try:
            async with self._slots, timeout(SEARCH_S + 1):
                device = await Discover.discover_single(
                    host, discovery_timeout=SEARCH_S, credentials=self._account
                )
        except (KasaException, OSError, TimeoutError):
            return None
        return None if device is None else _found(device)

    async def _read(self, found: _Found) -> tuple[list[_Record], _Record | None]:
        try:
            async with self._slots, self._opened(found.host, found.connection) as device:
                return _records(device, found), None
        except _Failed as e:
            problem = {
                "host": found.host,
                "code": e.code.value,
                "text": f"{found.host} {e.problem}",
            }
            return [], {**problem, "fix": e.fix} if e.fix else problem

    # -------------------------------------------------------------- one device

    async def _apply_to_one(
        self, items: Sequence[Mapping[str, Any]], moved: _Found | None
    ) -> list[_Record]:
        """Return an answer for each item; all of them are of one device."""
        host = moved.host if moved else items[0]["host"]
        connection = moved.connection if moved else items[0]["connection"]
        answers: list[_Record] = []
        sending: list[bool] = []
        try:
            async with self._slots, self._opened(host, connection) as device:
                _check_identity(device, items[0]["mac"])
                for item in items:
                    if any(former.get("changed") for former in answers):
                        await device.update()
                    try:
                        applied = await _apply(device, item, sending)
                    except _Failed as e:
                        answers.append({"error": e.to_json()})
                    else:
                        answers.append({**applied, "host": host, "connection": dict(connection)})
        except _Failed as e:
            answers.append({"error": e.to_json(sent=bool(sending))})
            answers += [{"error": e.to_json()}] * (len(items) - len(answers))
        return answers

    @asynccontextmanager
    async def _opened(self, host: str, connection: Mapping[str, Any]) -> AsyncIterator[Device]:
        """Connect and read the state; disconnect at the end. Raise `_Failed`."""
        with self._failures():
            parameters = DeviceConnectionParameters.from_dict(dict(connection))
            self._check_protocol(host, parameters)
            async with _session(host) as session, timeout(DEVICE_S):
                config = DeviceConfig(
                    host=host,
                    timeout=QUERY_S,
                    credentials=self._account,
                    connection_type=parameters,
                    http_client=session,
                )
                device = await _connect(config)
                try:
                    yield device
                finally:
                    await device.disconnect()

    def _check_protocol(self, host: str, parameters: DeviceConnectionParameters) -> None:
        """Raise `_Failed` for kinds of devices that are never asked.

        KLAP proves that the device knows the password before it gets anything. The AES protocol of
        old firmware gives the password to any device that asks for it.
        """
        way, family = parameters.encryption_type, parameters.device_family
        if family not in _FAMILIES:
            raise _Failed(ErrorCode.UNSUPPORTED, "is of a kind that cannot be used here")
        if way is DeviceEncryptionType.Aes and host not in self._hosts:
            raise _Failed(
                ErrorCode.UNSUPPORTED,
                "has an old firmware, which would get your password as it is",
                fix="Update its firmware, or write its address into hosts of [tool.kasa]",
            )

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what the library raises into `_Failed`; the device may have sent anything."""
        try:
            yield
        except _Failed:
            raise
        except AuthenticationError:
            problem = "does not accept the account" if self._account else "needs your account"
            fix = "Set username and password_file in [tool.kasa]"
            raise _Failed(ErrorCode.AUTH, problem, fix=fix) from None
        except UnsupportedDeviceError:
            raise _Failed(ErrorCode.UNSUPPORTED, "is of a kind that cannot be used here") from None
        except Exception as e:  # noqa: BLE001 - the library reads what a stranger sent
            raise _Failed(
                ErrorCode.NETWORK_ERROR, UNREACHABLE if _is_silence(e) else UNREADABLE
            ) from None


async def _connect(config: DeviceConfig) -> Device:
    """Return the device with its state read."""
    protocol = get_protocol(config)
    if protocol is None:
        raise UnsupportedDeviceError("no protocol for it")
    if config.connection_type.encryption_type is DeviceEncryptionType.Xor:
        protocol = IotProtocol(transport=_ShortXor(config=config))
    try:
        kind: type[Device] | None
        if isinstance(protocol, IotProtocol):
            info = await protocol.query({"system": {"get_sysinfo": {}}})
            kind = get_device_class_from_sys_info(info)
        else:
            family = config.connection_type.device_family.value
            kind = get_device_class_from_family(family, https=config.connection_type.https)
        device = (kind or SmartDevice)(config.host, protocol=protocol)
        await device.update()
    except BaseException:
        await protocol.close()
        raise
    return device


def _check_identity(device: Device, mac: str) -> None:
    """Raise `_Failed` if another device has the address now."""
    if _mac(device) != mac:
        raise _Failed(ErrorCode.NETWORK_ERROR, UNREACHABLE)


async def _apply(device: Device, item: Mapping[str, Any], sending: list[bool]) -> _Record:
    """Bring a device, or one plug of it, to the wanted state. Nothing is sent if it has that state.
    `sending` has an element from before a change is sent until the device confirmed it.
    """
    target = _target(device, item["child"])
    was = _state(target)
    on, brightness = item.get("on"), item.get("brightness")
    if brightness is not None and was["brightness"] is None:
        raise _Failed(ErrorCode.UNSUPPORTED, "cannot be dimmed")
    if on is None and brightness is None:
        return {**was, "was": was, "changed": False}
    on = on is not False and brightness != 0
    dims = on and brightness is not None
    leaves = [child for child in target.children if _is_switch(child)] or [target]
    different = [leaf for leaf in leaves if leaf.is_on is not on]
    if dims and (different or was["brightness"] != brightness):
        sending.append(True)
        await target.modules[Module.Light].set_state(
            LightState(light_on=True, brightness=brightness)
        )
        sending.clear()
    elif different:
        sending.append(True)
        for leaf in different:
            await (leaf.turn_on() if on else leaf.turn_off())
        sending.clear()
    now = {"on": on, "brightness": brightness if dims else was["brightness"]}
    changed = bool(different) or now != was
    return {**now, "was": was, "changed": changed}


# ------------------------------------------------------------------ what is read of a device


def _found(device: Device) -> _Found | None:
    """Return what is needed to ask it again; None if it is no device to be used."""
    try:
        return _Found(device.host, _mac(device), device.config.connection_type.to_dict())
    except Exception:  # noqa: BLE001 - made from what a stranger sent
        return None


def _records(device: Device, found: _Found) -> list[_Record]:
    """Return the device and the plugs in it, those that can be switched."""
    parts = [device, *[*device.children][:MAX_CHILDREN]]
    return [
        {
            "mac": _mac(device),
            "host": found.host,
            "connection": dict(found.connection),
            "child": "" if part is device else str(part.device_id)[:MAX_ID],
            "name": _name(part, found.host),
            "kind": part.device_type.value,
            **_state(part),
        }
        for part in parts
        if _is_switch(part) or (part is device and any(map(_is_switch, device.children)))
    ]


def _target(device: Device, child: str) -> Device:
    if not child:
        return device
    for one in device.children:
        if str(one.device_id)[:MAX_ID] == child:
            return one
    raise _Failed(ErrorCode.UNSUPPORTED, "is no part of its power strip any more")


def _is_switch(device: Device) -> bool:
    return "state" in device.features


def _state(device: Device) -> _Record:
    light = device.modules.get(Module.Light)
    dimmable = light is not None and light.has_feature("brightness")
    switches = [child for child in device.children if _is_switch(child)]
    on = any(child.is_on for child in switches) if switches else bool(device.is_on)
    return {"on": on, "brightness": int(light.brightness) if light and dimmable else None}


def _mac(device: Device) -> str:
    return str(device.mac).upper()[:MAX_ID]


def _name(device: Device, host: str) -> str:
    """Return the name its owner gave it, without what a lens cannot show."""
    alias = "".join(ch for ch in str(device.alias or "") if ch.isprintable())
    return " ".join(alias.split())[:MAX_NAME].strip() or f"{str(device.model)[:20]} {host}"


# ------------------------------------------------------------------ limits


class _ShortReader:
    """Reads answers of the old protocol, whose first four bytes announce up to 4 GiB."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def readexactly(self, n: int) -> bytes:
        if n > MAX_ANSWER:
            raise ValueError(f"an answer of {n} bytes")
        return await self._reader.readexactly(n)


class _ShortXor(XorTransport):
    """The old protocol, with a limit to what is read."""

    @property  # type: ignore[override]
    def reader(self) -> _ShortReader | None:
        return self._short

    @reader.setter
    def reader(self, reader: asyncio.StreamReader | None) -> None:
        self._short = None if reader is None else _ShortReader(reader)


class _ShortResponse(aiohttp.ClientResponse):
    """An HTTP answer, with a limit to what is read."""

    async def read(self) -> bytes:
        body = bytearray()
        async for chunk in self.content.iter_chunked(65_536):
            body += chunk
            if len(body) > MAX_ANSWER:
                self.close()
                raise aiohttp.ClientPayloadError("an answer that is too long")
        return bytes(body)


def _session(host: str) -> aiohttp.ClientSession:
    """Return a session for this one host: no redirect leads elsewhere, no cookie comes from it."""

    async def stay(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if request.url.host != host:
            raise aiohttp.InvalidURL(request.url, "the device redirects to another host")
        return await handler(request)

    return aiohttp.ClientSession(
        cookie_jar=aiohttp.CookieJar(unsafe=True, quote_cookie=False),
        response_class=_ShortResponse,
        middlewares=(stay,),
        trust_env=False,
        auto_decompress=False,
    )


def _is_silence(error: BaseException) -> bool:
    """Return whether no answer came at all, rather than a wrong one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TimeoutError | OSError | EOFError):
            return True
        cause = cause.__cause__
    return False


def _is_lost(answer: Mapping[str, Any]) -> bool:
    """Return whether it is worth a search: nothing answered, and nothing was sent."""
    error = answer.get("error") or {}
    return error.get("text") == UNREACHABLE and not error.get("sent")


def _ignore_callback_errors() -> None:
    """Keep what a stranger's datagram breaks in the library from the log."""
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
