"""ThingsBoard's IoT gateway as a process, with one device that tells the time.

`python -I benchmarks/peers_gateway.py FOLDER`, with the Python that has `thingsboard-gateway`;
FOLDER holds its `tb_gateway.json`. Nothing of glassd is imported here. Two things of the gateway
are changed: it does not ask its maker's server for a newer version, and it does not hear its own
messages, because the broker here would send an answer on `v1/gateway/rpc` back to it, which a
ThingsBoard server does not.
"""

import socket
import sys
import threading
from datetime import datetime
from functools import wraps
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

DEVICE = "glasses"
QOS = 1
"""Of answers. The gateway's own is 0; glassd answers with 1."""
AGAIN_S = 0.02


class Clock:
    """A connector with one device, which answers `now` and `bench_now` at once."""

    def __init__(self, gateway: Any, config: dict[str, Any], kind: str) -> None:
        self.name = "clock"
        self._gateway = gateway
        self._config = config
        self._kind = kind
        self._stopped = threading.Event()

    def open(self) -> None:
        threading.Thread(target=self._add_device, daemon=True).start()

    def _add_device(self) -> None:
        while not self._gateway.add_device(DEVICE, {"connector": self}, device_type="glasses"):
            if self._stopped.wait(AGAIN_S):
                return

    def server_side_rpc_handler(self, content: dict[str, Any]) -> dict[str, Any] | None:
        """Answer a call to the device by `send_rpc_reply`, one to the connector by a result."""
        if "device" not in content:
            self._set(content["params"])
            return {**_now(content["params"]), "qos": QOS}
        answer = _now(content["data"]["params"])
        self._gateway.send_rpc_reply(
            content["device"], content["data"]["id"], answer, quality_of_service=QOS
        )
        return None

    def _set(self, params: dict[str, Any]) -> None:
        if "send_at_once" in params:
            connection = self._gateway.tb_client.client._client.socket()  # noqa: SLF001 - nothing public leads to it
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, params["send_at_once"])

    def close(self) -> None:
        self._stopped.set()

    def get_id(self) -> str:
        return str(self._config["id"])

    def get_name(self) -> str:
        return self.name

    def get_type(self) -> str:
        return self._kind

    def get_config(self) -> dict[str, Any]:
        return self._config

    def is_connected(self) -> bool:
        return True

    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def on_attributes_update(self, content: dict[str, Any]) -> None:
        pass


def _now(params: dict[str, Any]) -> dict[str, Any]:
    now = datetime.now(ZoneInfo(params["timezone"]))
    return {"text": f"It is {now:%H:%M}.", "iso": now.isoformat(), "timezone": params["timezone"]}


def main(folder: str) -> None:
    """Run until this process is ended."""
    updater = import_module("thingsboard_gateway.tb_utility.tb_updater").TBUpdater
    updater.check_for_new_version = lambda _: None
    _hear_no_own_messages()
    loader = import_module("thingsboard_gateway.tb_utility.tb_loader").TBModuleLoader
    loader.LOADED_CONNECTORS["bench" + Clock.__name__] = Clock
    service = import_module("thingsboard_gateway.gateway.tb_gateway_service").TBGatewayService
    service(f"{folder}/tb_gateway.json")


def _hear_no_own_messages() -> None:
    client = import_module("paho.mqtt.client").Client
    options = import_module("paho.mqtt.subscribeoptions").SubscribeOptions
    subscribe = client.subscribe

    @wraps(subscribe)
    def subscribe_to_others(self: Any, topic: str, qos: int = 0) -> Any:
        return subscribe(self, topic, options=options(qos=qos, noLocal=True))

    client.subscribe = subscribe_to_others


if __name__ == "__main__":
    main(sys.argv[1])
