"""Kasa and Tapo devices on loopback addresses, which speak the real protocols.

`KasaDevice` has the old protocol: JSON, each byte XORed with the one before, over TCP after a
length of four bytes, and over UDP for the search. `KlapDevice` has KLAP: HTTP, a handshake in which
both sides prove that they know the password, then AES-CBC; both with the commands of either family.
"""

import asyncio
import base64
import hashlib
import json
import random
import socket
import struct
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

SEARCH_PORT = 9999
NEW_SEARCH_PORT = 20002
LOOPBACK_BROADCAST = "127.255.255.255"
START = 171
BULB_METER = "smartlife.iot.common.emeter"
IOT_MODULES = ("system", "smartlife.iot.smartbulb.lightingservice", BULB_METER)


def scramble(plain):
    key, out = START, bytearray()
    for byte in plain:
        key ^= byte
        out.append(key)
    return bytes(out)


def unscramble(cipher):
    keys = bytes([START]) + cipher
    return bytes(byte ^ key for byte, key in zip(cipher, keys, strict=False))


def new_address():
    """Return a loopback address of its own: the ports of these devices are fixed."""
    return f"127.{random.randint(1, 250)}.{random.randint(1, 250)}.{random.randint(2, 250)}"


# ------------------------------------------------------------------ what devices know and do


class IotCommands:
    """The commands of Kasa plugs, strips and bulbs: `{module: {command: arguments}}`."""

    def __init__(self, alias, *, kind="plug", on=False, brightness=50, plugs=(), mac=None):
        self.kind, self.on, self.brightness = kind, on, brightness
        self.alias, self.mac = (
            alias,
            mac or ":".join(f"{random.randrange(256):02X}" for _ in "123456"),
        )
        self.plugs = [{"id": f"0{n}", "alias": name, "state": 0} for n, name in enumerate(plugs)]
        self.changes = []
        self.refuses = False

    @property
    def family(self):
        return "IOT.SMARTBULB" if self.kind == "bulb" else "IOT.SMARTPLUGSWITCH"

    def sysinfo(self):
        known = {
            "alias": self.alias,
            "deviceId": self.mac.replace(":", ""),
            "err_code": 0,
            "rssi": -50,
            "hw_ver": "1.0",
            "sw_ver": "1.0.0",
        }
        if self.kind == "bulb":
            level = {"brightness": self.brightness, "hue": 0, "saturation": 0, "color_temp": 2700}
            light = {"on_off": 1, **level} if self.on else {"on_off": 0, "dft_on_state": level}
            return {
                **known,
                "mic_type": self.family,
                "mic_mac": self.mac.replace(":", ""),
                "model": "KL110(EU)",
                "is_dimmable": 1,
                "is_color": 0,
                "is_variable_color_temp": 0,
                "light_state": light,
                "preferred_state": [],
            }
        known |= {"type": self.family, "mac": self.mac, "feature": "TIM", "dev_name": "Smart Plug"}
        if self.plugs:
            return {**known, "model": "HS300(US)", "children": self.plugs, "child_num": 3}
        return {**known, "model": "HS100(EU)", "relay_state": int(self.on), "on_time": 0}

    def answer(self, request):
        chosen = request.get("context", {}).get("child_ids", [])
        return {
            module: {
                command: self.run(command, arguments or {}, chosen)
                for command, arguments in commands.items()
            }
            if module in IOT_MODULES
            else {"err_code": -1, "err_msg": "module not support"}
            for module, commands in request.items()
            if module != "context"
        }

    def run(self, command, arguments, chosen):
        if command == "get_sysinfo":
            return self.sysinfo()
        if command == "set_relay_state":
            self.change(f"{','.join(chosen)}={arguments['state']}")
            for plug in self.plugs:
                if plug["id"] in chosen:
                    plug["state"] = arguments["state"]
            if not chosen:
                self.on = bool(arguments["state"])
            return {"err_code": 0}
        if command == "transition_light_state":
            self.change(f"{arguments.get('on_off')}/{arguments.get('brightness')}")
            self.on = bool(arguments["on_off"])
            self.brightness = arguments.get("brightness", self.brightness)
            return {**self.sysinfo()["light_state"], "err_code": 0}
        if command == "get_realtime":
            return {"power_mw": 0, "err_code": 0}
        if command in ("get_monthstat", "get_daystat"):
            return {f"{command[4:-4]}_list": [], "err_code": 0}
        return {"err_code": -2, "err_msg": "member not support"}

    def change(self, what):
        self.changes.append(what)
        if self.refuses:
            raise ConnectionAbortedError


class SmartCommands:
    """The commands of Tapo devices: `{method, params}`."""

    def __init__(self, alias, *, kind="plug", on=False, brightness=50, plugs=()):
        self.kind, self.on, self.brightness = kind, on, brightness
        self.alias, self.mac = alias, "-".join(f"{random.randrange(256):02X}" for _ in "123456")
        self.plugs = {
            f"{self.mac}-{n}": {"nickname": name, "device_on": False}
            for n, name in enumerate(plugs)
        }
        self.changes = []

    @property
    def family(self):
        return "SMART.TAPOBULB" if self.kind == "bulb" else "SMART.TAPOPLUG"

    def info(self):
        known = {
            "device_id": self.mac,
            "mac": self.mac,
            "type": self.family,
            "model": "L510" if self.kind == "bulb" else "P100",
            "nickname": base64.b64encode(self.alias.encode()).decode(),
            "fw_ver": "1.0.0 Build 1",
            "hw_ver": "1.0",
            "rssi": -50,
            "ssid": "",
        }
        if not self.plugs:
            known["device_on"] = self.on
        return {**known, "brightness": self.brightness} if self.kind == "bulb" else known

    def answer(self, request):
        method, params = request["method"], request.get("params") or {}
        if method == "multipleRequest":
            answers = [{"method": one["method"], **self.answer(one)} for one in params["requests"]]
            return {"error_code": 0, "result": {"responses": answers}}
        if method == "control_child":
            inner = self.child(params["device_id"], params["requestData"])
            return {"error_code": 0, "result": {"responseData": inner}}
        result = self.run(method, params)
        return {"error_code": -1002} if result is None else {"error_code": 0, "result": result}

    def run(self, method, params):
        if method == "set_device_info":
            self.changes.append(params)
            self.on = params.get("device_on", self.on)
            self.brightness = params.get("brightness", self.brightness)
            return {}
        ids = ["device", *(["brightness"] if self.kind == "bulb" else [])]
        ids += ["child_device"] if self.plugs else []
        parts = [{"id": one, "ver_code": 1} for one in ids]
        children = [
            {
                **plug,
                "device_id": key,
                "nickname": base64.b64encode(plug["nickname"].encode()).decode(),
                "category": "plug.powerstrip.sub-plug",
                "model": "P300",
                "mac": self.mac,
            }
            for key, plug in self.plugs.items()
        ]
        of_children = [{"device_id": key, "component_list": parts[:1]} for key in self.plugs]
        return {
            "component_nego": {"component_list": parts},
            "get_device_info": self.info(),
            "get_connect_cloud_state": {"status": 0},
            "get_child_device_list": {
                "child_device_list": children,
                "start_index": 0,
                "sum": len(children),
            },
            "get_child_device_component_list": {
                "child_component_list": of_children,
                "start_index": 0,
                "sum": len(children),
            },
        }.get(method)

    def child(self, key, request):
        if request["method"] == "set_device_info":
            self.changes.append({key: request["params"]})
            self.plugs[key] |= request["params"]
            return {"error_code": 0, "result": {}}
        return {"error_code": -1002}


# ------------------------------------------------------------------ protocols


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, answer):
        self._answer = answer
        self.closed = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc):
        self.closed.set_result(None)

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        answer = self._answer(data)
        if answer is not None:
            self.transport.sendto(answer, addr)


class _Device:
    """A device that is switched on: what both protocols share."""

    search_port = SEARCH_PORT

    def __init__(self, commands, host=None):
        self.commands, self.host = commands, host or new_address()
        self.instead = None
        """Bytes that are sent instead of each answer; None: the answer."""
        self.found_as = None
        """Bytes that are sent instead of the answer to a search."""
        self.connections = 0

    async def start(self, *, broadcast=False):
        loop = asyncio.get_running_loop()
        udp, own = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self._found), local_addr=(self.host, self.search_port)
        )
        self._udps = [(udp, own)]
        if broadcast:
            common = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            common.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            common.bind((LOOPBACK_BROADCAST, self.search_port))
            other, heard = await loop.create_datagram_endpoint(
                lambda: _Datagrams(self._found), sock=common
            )
            heard.transport = udp  # the answer has the device's own address
            self._udps.append((other, heard))
        self._tcp = await asyncio.start_server(self._serve, self.host, self.port)
        self.port = self._tcp.sockets[0].getsockname()[1]

    async def stop(self):
        """Switch it off; its address is free when this returns."""
        self._tcp.close()
        for udp, heard in self._udps:
            udp.close()
            await heard.closed

    def _found(self, data):
        return self.found_as if self.found_as is not None else self.found(data)

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            await self.serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class KasaDevice(_Device):
    """The old protocol."""

    port = SEARCH_PORT

    def found(self, data):
        request = json.loads(unscramble(data))
        return scramble(json.dumps(self.commands.answer(request)).encode())

    async def serve(self, reader, writer):
        while True:
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            request = json.loads(unscramble(await reader.readexactly(length)))
            answer = scramble(json.dumps(self.commands.answer(request)).encode())
            writer.write(self.instead or struct.pack(">I", len(answer)) + answer)
            await writer.drain()


class KlapDevice(_Device):
    """KLAP. `version` 1 hashes the account with MD5, 2 with SHA-1 and SHA-256."""

    search_port = NEW_SEARCH_PORT
    port = 0

    def __init__(self, commands, username, password, *, version=2, encryption="KLAP", host=None):
        super().__init__(commands, host)
        self.version, self.encryption = version, encryption
        name, word = username.encode(), password.encode()
        if version == 1:
            md5 = hashlib.md5
            self._owner = md5(md5(name).digest() + md5(word).digest()).digest()
        else:
            sha1 = hashlib.sha1
            self._owner = hashlib.sha256(sha1(name).digest() + sha1(word).digest()).digest()
        self._seeds = {}

    def found(self, data):
        scheme = {
            "encrypt_type": self.encryption,
            "is_support_https": False,
            "http_port": self.port,
        }
        if self.version == 2:
            scheme["lv"] = 2
        result = {
            "device_id": "0" * 32,
            "device_type": self.commands.family,
            "device_model": "P100(EU)",
            "ip": self.host,
            "mac": self.commands.mac.replace(":", "-"),
            "mgt_encrypt_schm": scheme,
        }
        return bytes(16) + json.dumps({"error_code": 0, "result": result}).encode()

    async def serve(self, reader, writer):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            target = urlsplit(head[0].split(" ")[1])
            cookie = fields.get("cookie", "").partition("tp_sessionid=")[2]
            status, answer, session = self.handle(target, body, cookie)
            if self.instead is not None:
                writer.write(self.instead)
                await reader.read()  # until the other side has enough
                return
            cookies = f"Set-Cookie: TP_SESSIONID={session};TIMEOUT=86400\r\n" if session else ""
            writer.write(
                f"HTTP/1.1 {status} X\r\n{cookies}Content-Length: {len(answer)}\r\n\r\n".encode()
                + answer
            )
            await writer.drain()

    def handle(self, target, body, cookie):
        """Return the status, the body, and the new session's name."""
        if target.path == "/app/handshake1":
            session, mine = f"s{len(self._seeds)}", random.randbytes(16)
            self._seeds[session] = body, mine
            proof = body + self._owner if self.version == 1 else body + mine + self._owner
            return 200, mine + hashlib.sha256(proof).digest(), session
        if cookie not in self._seeds:
            return 403, b"", ""
        theirs, mine = self._seeds[cookie]
        if target.path == "/app/handshake2":
            proof = mine + self._owner if self.version == 1 else mine + theirs + self._owner
            right = body == hashlib.sha256(proof).digest()
            return (200 if right else 403), b"", ""
        (number,) = parse_qs(target.query)["seq"]
        return 200, self._exchange(theirs + mine + self._owner, int(number), body), ""

    def _exchange(self, secret, number, body):
        """Check, decrypt and answer one request."""
        count = struct.pack(">i", number)
        key = hashlib.sha256(b"lsk" + secret).digest()[:16]
        start = hashlib.sha256(b"iv" + secret).digest()[:12] + count
        signing = hashlib.sha256(b"ldk" + secret).digest()[:28]
        cipher = Cipher(algorithms.AES(key), modes.CBC(start))
        assert body[:32] == hashlib.sha256(signing + count + body[32:]).digest()
        opening = cipher.decryptor()
        plain = opening.update(body[32:]) + opening.finalize()
        request = json.loads(plain[: -plain[-1]])
        answer = json.dumps(self.commands.answer(request)).encode()
        rest = 16 - len(answer) % 16
        closing = cipher.encryptor()
        sealed = closing.update(answer + bytes([rest]) * rest) + closing.finalize()
        return hashlib.sha256(signing + count + sealed).digest() + sealed


@asynccontextmanager
async def switched_on(*devices, broadcast=False):
    """Let these devices answer until the end."""
    started = []
    try:
        for device in devices:
            await device.start(broadcast=broadcast)
            started.append(device)
        yield devices
    finally:
        for device in started:
            await device.stop()
