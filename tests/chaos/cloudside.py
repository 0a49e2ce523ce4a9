"""The cloud's operator and its witness: hears everything about one edge over MQTT, writes it down,
and invokes its tools.

Standard library and paho only. `python -m tests.chaos.cloudside PORT EDGE RECORD`; orders are JSON
lines on stdin (`{"do": "invoke", "id", "tool", "args", "ttl_s"}`). An invocation is offered until
it is accepted and asked for until its result is here, always with the same id: that is all a
careful cloud can do.
"""

import json
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.chaos.msgpack_reader import unpack
from tests.chaos.records import Record, announce

JSON = "application/vnd.glassd.v1+json"
OFFER_S = (1.0, 2.0, 4.0, 8.0)
ASK_AGAIN_S = 5.0
"""Between two askings for the result of an accepted invocation: a broker may have lost it."""


class Operator:
    def __init__(self, port: int, edge: str, record: Record) -> None:
        self._record = record
        self._prefix = f"glassd/v1/default/e/{edge}"
        self._open: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id="chaos-operator", protocol=paho.MQTTv5
        )
        self._client.on_connect = self._connected
        self._client.on_message = self._heard
        self._client.reconnect_delay_set(0.1, 0.5)
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600
        self._client.connect_async("127.0.0.1", port, 10, clean_start=False, properties=properties)
        self._client.loop_start()

    def _connected(self, client: paho.Client, _u: Any, _flags: Any, reason: Any, _p: Any) -> None:
        self._record.say(ev="connected", reason=str(reason))
        client.subscribe(f"{self._prefix}/#", qos=1)

    def _heard(self, _c: Any, _u: Any, message: paho.MQTTMessage) -> None:
        properties = message.properties
        user = dict(getattr(properties, "UserProperty", None) or [])
        raw = bytes(message.payload)
        try:
            body = (
                json.loads(raw) if getattr(properties, "ContentType", "") == JSON else unpack(raw)
            )
        except ValueError as e:
            body = {"unreadable": str(e)}
        tail = message.topic.removeprefix(self._prefix + "/")
        correlation = getattr(properties, "CorrelationData", None)
        self._record.say(
            ev="heard",
            topic=tail,
            k=user.get("k", ""),
            a=user.get("a", ""),
            dup=message.dup,
            body=_plain(body),
            id=str(uuid.UUID(bytes=correlation)) if correlation and len(correlation) == 16 else "",
        )
        if tail == "reply/operator" and isinstance(body, dict):
            self._follow(str(body.get("id", "")), user.get("k") or str(body.get("k", "")))

    def _follow(self, call_id: str, kind: str) -> None:
        with self._lock:
            waiting = self._open.get(call_id)
            if waiting is None:
                return
            if kind == "result":
                del self._open[call_id]
            elif not waiting["accepted"]:
                waiting["accepted"] = True
                waiting["due"] = time.monotonic() + ASK_AGAIN_S

    def invoke(self, order: dict[str, Any]) -> None:
        with self._lock:
            self._open[order["id"]] = {**order, "accepted": False, "times": 0, "due": 0.0}

    def tick(self) -> None:
        """Send what is due."""
        now = time.monotonic()
        with self._lock:
            due = [waiting for waiting in self._open.values() if waiting["due"] <= now]
            for waiting in due:
                pause = (
                    ASK_AGAIN_S
                    if waiting["accepted"]
                    else OFFER_S[min(waiting["times"], len(OFFER_S) - 1)]
                )
                waiting["times"] += 1
                waiting["due"] = now + pause
        for waiting in due:
            if self._client.is_connected():
                self._offer(waiting)

    def _offer(self, waiting: dict[str, Any]) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        properties.ContentType = JSON
        properties.ResponseTopic = f"{self._prefix}/reply/operator"
        properties.CorrelationData = uuid.UUID(waiting["id"]).bytes
        properties.MessageExpiryInterval = int(waiting["ttl_s"])
        properties.UserProperty = [("k", "call"), ("a", str(waiting["times"]))]
        body = {
            "v": 1,
            "id": waiting["id"],
            "tool": waiting["tool"],
            "args": waiting["args"],
            "ttl_s": waiting["ttl_s"],
        }
        self._client.publish(
            f"{self._prefix}/invoke", json.dumps(body), qos=1, properties=properties
        )
        self._record.say(
            ev="invoked", id=waiting["id"], tool=waiting["tool"], times=waiting["times"]
        )

    def orders(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if order["do"] == "invoke":
                self.invoke(order)
            elif order["do"] == "open":
                with self._lock:
                    left = list(self._open)
                announce(open=left)


def _plain(value: Any) -> Any:
    """JSON can hold it: bytes become their length."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else value


def main() -> None:
    operator = Operator(int(sys.argv[1]), sys.argv[2], Record(Path(sys.argv[3])))
    announce(ready=True)
    orders = threading.Thread(target=operator.orders)
    orders.start()
    while orders.is_alive():  # until stdin ends: whoever started us has gone
        operator.tick()
        orders.join(0.02)


if __name__ == "__main__":
    main()
