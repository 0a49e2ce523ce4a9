"""A virtual radio: controllers on one link, and a TCP server that offers one as HCI H4."""

import asyncio
import contextlib
import logging
import struct
from typing import Any, Final

from bumble import core, hci, ll
from bumble.controller import Controller
from bumble.link import LocalLink

from firmware_bridge.deadlines import timeout
from firmware_bridge.transports.hci_stream import BUSY, TcpHci

log = logging.getLogger(__name__)

MAX_EARLY_PACKETS: Final = 8
"""Seconds for a host's next command: it sends one (the reset) and waits for its answer."""
HANDOVER_S: Final = 0.5
"""Seconds a second client waits for the first to leave: a killed host's FIN can arrive later."""
RSSI_DBM: Final = -50
"""Signal strength in dBm: every device is a metre away."""
ACL_BYTES: Final = 251
"""Payload bytes of one ACL packet, as with data length extension (bumble's default is 27)."""


class VirtualLink(LocalLink):
    """bumble's link, with support for hosts that connect from their public address, as BlueZ does.

    bumble 0.0.236 puts the sender's random address on every LE packet, so the peer finds no
    connection for it.
    """

    def send_acl_data(
        self,
        sender_controller: Controller,
        destination_address: hci.Address,
        transport: core.PhysicalTransport,
        data: bytes,
    ) -> None:
        connection = sender_controller.le_connections.get(destination_address)
        receiver = self.find_le_controller(destination_address)
        over_le = transport is core.PhysicalTransport.LE
        if over_le and connection is not None and receiver is not None:
            packet = connection.self_address, transport, data
            asyncio.get_running_loop().call_soon(receiver.on_link_acl_data, *packet)


class VirtualController(Controller):
    """A controller with HCI_Reset, cancelled connections and lost links, which bumble's lacks."""

    le_acl_data_packet_length = ACL_BYTES
    acl_data_packet_length = ACL_BYTES

    def __init__(
        self, name: str, *, link: LocalLink, public_address: str, sink: Any = None
    ) -> None:
        super().__init__(
            name, host_sink=sink, link=link, public_address=hci.Address(public_address)
        )
        # Linux waits for an Enhanced Connection Complete that this controller never sends when
        # these are offered.
        self.le_features &= ~(
            hci.LeFeatureMask.LL_PRIVACY | hci.LeFeatureMask.LE_EXTENDED_ADVERTISING
        )

    def drop_links(self, reason: int = hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR) -> int:
        """Drop every link as if the other side had walked away; return how many there were."""
        lost = list(self.le_connections.values())
        for ours in lost:
            peer = self.link.find_le_controller(ours.peer_address)
            theirs = peer.le_connections.get(ours.self_address) if peer is not None else None
            if peer is not None and theirs is not None:
                peer.on_le_disconnected(theirs, reason)
            self.on_le_disconnected(ours, reason)
        return len(lost)

    def silence(self) -> None:
        """Return to the state after power-on: no link, no advertising, no scan, nothing pending."""
        self.drop_links()
        self.le_legacy_advertiser.stop()
        for advertising_set in self.advertising_sets.values():
            advertising_set.stop()
        self.advertising_sets.clear()
        self.le_scan_enable = False
        self.pending_le_connection = None

    def on_advertising_pdu(self, pdu: ll.AdvInd | ll.AdvExtInd) -> None:
        """Report an advertisement and, to an active scan, its scan response, which bumble omits."""
        if isinstance(pdu, ll.AdvExtInd) or not self.le_scan_enable:
            super().on_advertising_pdu(pdu)
            return
        kinds = hci.HCI_LE_Advertising_Report_Event.EventType
        self._report(pdu, kinds.ADV_IND, pdu.data)
        if self.le_scan_type:
            sender = self.link.find_le_controller(pdu.advertiser_address)
            response = b"" if sender is None else sender.le_legacy_advertiser.scan_response_data
            self._report(pdu, kinds.SCAN_RSP, response)
        listening, self.le_scan_enable = self.le_scan_enable, False
        try:
            super().on_advertising_pdu(pdu)  # a pending connection to this advertiser is made now
        finally:
            self.le_scan_enable = listening

    def _report(self, pdu: ll.AdvInd, kind: int, data: bytes) -> None:
        address = pdu.advertiser_address
        report = hci.HCI_LE_Advertising_Report_Event.Report(
            event_type=kind,
            address_type=address.address_type,
            address=address,
            data=data,
            rssi=RSSI_DBM,
        )
        self.send_hci_packet(hci.HCI_LE_Advertising_Report_Event([report]))

    def on_hci_reset_command(
        self, _command: hci.HCI_Reset_Command
    ) -> hci.HCI_StatusReturnParameters:
        self.silence()
        return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.SUCCESS)

    def on_hci_le_create_connection_cancel_command(
        self, _command: hci.HCI_LE_Create_Connection_Cancel_Command
    ) -> hci.HCI_StatusReturnParameters:
        pending, self.pending_le_connection = self.pending_le_connection, None
        if pending is None:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR)
        asyncio.get_running_loop().call_soon(self._report_cancelled, pending.peer_address)
        return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.SUCCESS)

    def on_link_acl_data(
        self, sender_address: hci.Address, transport: core.PhysicalTransport, data: bytes
    ) -> None:
        if sender_address in self.le_connections:  # else: was in flight when the link was lost
            super().on_link_acl_data(sender_address, transport, data)

    def _report_cancelled(self, peer: hci.Address) -> None:
        self.send_hci_packet(
            hci.HCI_LE_Connection_Complete_Event(
                status=hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR,
                connection_handle=0,
                role=hci.Role.CENTRAL,
                peer_address_type=peer.address_type,
                peer_address=peer,
                connection_interval=0,
                peripheral_latency=0,
                supervision_timeout=0,
                central_clock_accuracy=0,
            )
        )


class Air:
    """One shared virtual radio channel: every controller in it hears every other."""

    def __init__(self) -> None:
        self._link = VirtualLink()  # type: ignore[no-untyped-call]  # bumble is half annotated
        self._made = 0

    def controller(self, name: str, *, sink: Any = None) -> VirtualController:
        """Add a controller with its own address; `sink.on_packet` receives its HCI packets."""
        self._made += 1
        address = f"C0:FF:EE:00:{self._made >> 8 & 0xFF:02X}:{self._made & 0xFF:02X}/P"
        return VirtualController(name, link=self._link, public_address=address, sink=sink)

    def remove(self, controller: VirtualController) -> None:
        """Remove a controller: links drop, peers see it, its host receives no more. Idempotent."""
        controller.host = None
        controller.silence()
        self._link.controllers.discard(controller)


class _HciHost:
    """One connected HCI host and the controller it uses. Used once."""

    def __init__(self, server: "HciServer") -> None:
        self._server = server
        self._controller: VirtualController | None = None
        self._early: list[bytes] = []
        self.stream = TcpHci(self._ended)
        self.stream.set_packet_sink(self)
        server.connected(self)

    def admit(self, air: Air) -> None:
        """Assign a new controller and replay what the host sent while waiting."""
        self._controller = air.controller("dongle", sink=self.stream)
        early, self._early = self._early, []
        for packet in early:
            self.on_packet(packet)

    def on_packet(self, packet: bytes) -> None:
        """Process one HCI packet of the host."""
        if self._controller is None:
            self._early.append(packet)
            if len(self._early) > MAX_EARLY_PACKETS:
                self.reject("it sent commands before it was admitted")
            return
        try:
            self._controller.on_packet(packet)
        except (
            ValueError,
            TypeError,
            IndexError,
            AttributeError,
            AssertionError,
            struct.error,
            core.BaseBumbleError,
        ) as error:
            self.reject(f"invalid HCI packet: {error}")

    def refuse(self) -> None:
        self.stream.on_packet(BUSY)
        self.reject("this radio already has a host")

    def reject(self, why: str) -> None:
        log.warning("HCI host rejected: %s", why)
        self.stream.hang_up()

    def _ended(self, why: str) -> None:
        controller, self._controller = self._controller, None
        if controller is not None:
            self._server.air.remove(controller)
        self._server.disconnected(self, why)


class HciServer:
    """Serves a controller of `air` on TCP, to one host at a time.

    When a host's connection ends, its links drop and its controller is discarded; the next host
    gets a new one.
    """

    def __init__(self, air: Air, host: str, port: int) -> None:
        self.air = air
        self._address = (host, port)
        self._server: asyncio.Server | None = None
        self._active: _HciHost | None = None
        self._waiting: dict[_HciHost, asyncio.TimerHandle] = {}

    async def open(self) -> tuple[str, int]:
        """Listen; return the bound address (port 0 picks a free one). Raises OSError."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _HciHost(self).stream, *self._address
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def close(self) -> None:
        """Disconnect all hosts and stop listening. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for host in [*self._waiting, *([self._active] if self._active else [])]:
            await host.stream.close()
        with contextlib.suppress(TimeoutError):
            async with timeout(1):  # on Python ≥ 3.12 this waits for the connections to end
                await server.wait_closed()

    def connected(self, host: _HciHost) -> None:
        if self._active is None:
            self._admit(host)
        else:
            self._waiting[host] = asyncio.get_running_loop().call_later(
                HANDOVER_S, self._reject, host
            )

    def disconnected(self, host: _HciHost, why: str) -> None:
        timer = self._waiting.pop(host, None)
        if timer is not None:
            timer.cancel()
        if host is self._active:
            self._active = None
            log.info("HCI host disconnected (%s); the radio is free", why)
            if self._waiting and self._server is not None:
                following = next(iter(self._waiting))
                self._waiting.pop(following).cancel()
                self._admit(following)

    def _admit(self, host: _HciHost) -> None:
        self._active = host
        host.admit(self.air)
        log.info("HCI host connected to the radio")

    def _reject(self, host: _HciHost) -> None:
        self._waiting.pop(host, None)
        host.refuse()
