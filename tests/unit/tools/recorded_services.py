"""Servers on loopback that replay the answers of weather and map services, and a gpsd."""

import json
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TPV = {
    "class": "TPV",
    "device": "/dev/ttyACM0",
    "mode": 3,
    "lat": 60.397,
    "lon": 5.3245,
    "altHAE": 48.1,
    "eph": 9.5,
    "speed": 0.02,
}
"""A report with a position; `gpsd` adds the time."""
VERSION = {"class": "VERSION", "release": "3.25", "rev": "3.25", "proto_major": 3}
DEVICES = {"class": "DEVICES", "devices": [{"class": "DEVICE", "path": "/dev/ttyACM0"}]}


class Service:
    """An HTTP server. `answers`: path → what it answers, or a function of the query; bytes are sent
    as they are. `status`, `headers`: of every answer. `asked`: the requests so far.
    """

    def __init__(self):
        self.answers, self.asked, self.bodies, self.headers = {}, [], [], {}
        self.agents, self.status, self.kind, self.slow = [], 200, "application/json", None
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                service._reply(self)

            def do_POST(self):
                size = int(self.headers.get("Content-Length", 0))
                service.bodies.append(json.loads(self.rfile.read(size)))
                service._reply(self)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def _reply(self, handler):
        parts = urlsplit(handler.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, query))
        self.agents.append(handler.headers.get("User-Agent"))
        if self.slow is not None:
            self.slow.wait(30)
        found = self.answers.get(parts.path)
        found = found(query) if callable(found) else found
        status = 404 if found is None else self.status
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        handler.send_response(status)
        for key, value in {"Content-Type": self.kind, **self.headers}.items():
            handler.send_header(key, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self):
        if self.slow is not None:
            self.slow.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


@contextmanager
def gpsd(*reports, stays=True):
    """Run a gpsd that gives these reports to each client that asks to watch, one client after the
    other; yield HOST:PORT.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                _tell_position(connection, reports, ended if stays else None)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def _tell_position(connection, reports, ended):
    """Talk to one client of the gpsd; with `ended`, until it has gone or this is set."""
    connection.sendall(json.dumps(VERSION).encode() + b"\r\n")
    asked = connection.makefile("rb").readline()
    assert asked.startswith(b'?WATCH={"enable":true,"json":true}'), asked
    try:
        for report in (DEVICES, *reports):
            raw = report if isinstance(report, bytes) else json.dumps(_timed(report)).encode()
            connection.sendall(raw + b"\r\n")
        connection.settimeout(0.05)
        while ended is not None and not ended.is_set():
            try:
                if not connection.recv(100):
                    return
            except TimeoutError:
                continue
    except OSError:
        return


def _timed(report):
    """Return a report with the time of this moment, as gpsd writes it, unless it has one."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": now, **report} if report["class"] == "TPV" else report


def unused_address():
    """Return HOST:PORT at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


# ------------------------------------------------------------------ Open-Meteo


FIRST_HOUR = "2026-11-21T00:00"


def forecast(hours=48):
    """Return a forecast as Open-Meteo answers it, for Bergen on the morning of 2026-11-21."""
    times = [f"2026-11-{21 + h // 24:02}T{h % 24:02}:00" for h in range(hours)]
    coming = {12: (7.4, 3, 5), 13: (8.4, 3, 30), 14: (7.9, 63, 80), 15: (5.1, 61, 60)}
    rows = [coming.get(h, (6.0, 2, None)) for h in range(hours)]
    return {
        "latitude": 60.4,
        "longitude": 5.32,
        "generationtime_ms": 0.19,
        "utc_offset_seconds": 3600,
        "timezone": "Europe/Oslo",
        "timezone_abbreviation": "GMT+1",
        "elevation": 12.0,
        "current_units": {"time": "iso8601", "interval": "seconds", "temperature_2m": "°C"},
        "current": {
            "time": "2026-11-21T11:30",
            "interval": 900,
            "temperature_2m": 7.2,
            "apparent_temperature": 4.1,
            "relative_humidity_2m": 91,
            "precipitation": 0.6,
            "weather_code": 63,
            "wind_speed_10m": 22.3,
            "wind_gusts_10m": 39.6,
            "wind_direction_10m": 231,
        },
        "hourly_units": {"time": "iso8601", "temperature_2m": "°C"},
        "hourly": {
            "time": times,
            "temperature_2m": [row[0] for row in rows],
            "weather_code": [row[1] for row in rows],
            "precipitation_probability": [row[2] for row in rows],
            "wind_speed_10m": [18.0] * hours,
        },
        "daily_units": {"time": "iso8601", "temperature_2m_max": "°C"},
        "daily": {
            "time": [f"2026-11-{day}" for day in range(21, 28)],
            "weather_code": [63, 2, 71, 0, 3, 45, 95],
            "temperature_2m_max": [8.9, 6.2, 1.4, 2.0, 4.0, 5.0, 9.0],
            "temperature_2m_min": [5.1, 3.4, -2.6, -4.0, 0.0, 1.0, 4.0],
            "precipitation_probability_max": [80, 5, 65, 0, 10, None, 90],
            "wind_speed_10m_max": [36.0, 12.0, 9.0, 8.0, 8.0, 5.0, 44.0],
        },
    }


BERGEN = {
    "id": 3161732,
    "name": "Bergen",
    "latitude": 60.39299,
    "longitude": 5.32415,
    "elevation": 12.0,
    "feature_code": "PPLA",
    "country_code": "NO",
    "timezone": "Europe/Oslo",
    "population": 213585,
    "country": "Norway",
    "admin1": "Vestland",
}


def geocoding(query):
    """Answer as Open-Meteo's geocoding: without `results` for a name that it does not know."""
    results = {"Bergen": [BERGEN], "Köln": [{**BERGEN, "name": "Köln", "country": "Germany"}]}
    found = results.get(query["name"])
    return {"generationtime_ms": 0.5} | ({"results": found} if found else {})


# ------------------------------------------------------------------ Nominatim


def place(name, display, latitude, longitude, kind="station"):
    """Return a place as Nominatim writes it."""
    return {
        "place_id": 128,
        "licence": "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright",
        "osm_type": "node",
        "osm_id": 1,
        "lat": str(latitude),
        "lon": str(longitude),
        "category": "railway",
        "type": kind,
        "place_rank": 30,
        "importance": 0.3,
        "addresstype": "railway",
        "name": name,
        "display_name": display,
        "boundingbox": ["60.3", "60.4", "5.3", "5.4"],
    }


STATION = place(
    "Bergen stasjon", "Bergen stasjon, Strømgaten 4, Bergen, Norge", "60.3903", "5.3333"
)
OTHER = place("Stasjonen", "Stasjonen, Oslo, Norge", 59.911, 10.753)
HOUSE = place("", "12, Große Straße, Köln, Deutschland", 50.93, 6.96, "house")


def places(query):
    known = {"Bergen stasjon": [STATION, OTHER], "Große Straße 12": [HOUSE]}
    return known.get(query["q"], [])


# ------------------------------------------------------------------ OSRM and Valhalla


def step(kind, modifier="", name="", metres=100.0, **more):
    """Return a step as OSRM writes it."""
    where = {"location": [5.33, 60.39], "bearing_before": 10, "bearing_after": 184, "type": kind}
    maneuver = where | ({"modifier": modifier} if modifier else {}) | more.pop("maneuver", {})
    return {
        "geometry": "_p~iF~ps|U",
        "maneuver": maneuver,
        "mode": "walking",
        "driving_side": "right",
        "name": name,
        "intersections": [],
        "weight": 80.1,
        "duration": 80.1,
        "distance": metres,
        **more,
    }


STEPS = [
    step("depart", name="Bryggen", metres=421.3),
    step("turn", "left", "Kaigaten", 1198.9),
    step("arrive", "right", "Strømgaten", 0),
]


def osrm(steps=STEPS):
    leg = {"steps": steps, "summary": "", "weight": 1180, "duration": 1180.2, "distance": 1620.2}
    route = {"legs": [leg], "weight_name": "duration", "duration": 1180.2, "distance": 1620.2}
    return {"code": "Ok", "routes": [route], "waypoints": [{"name": "Bryggen"}, {"name": ""}]}


def valhalla():
    maneuvers = [
        {"type": 1, "instruction": "Walk south on Bryggen.", "length": 0.421, "time": 300},
        {"type": 15, "instruction": "Turn left onto Kaigaten.", "length": 1.199, "time": 880},
        {"type": 5, "instruction": "Your destination is on the right.", "length": 0, "time": 0},
    ]
    leg = {"maneuvers": maneuvers, "summary": {"length": 1.62, "time": 1180}, "shape": "abc"}
    trip = {
        "locations": [],
        "legs": [leg],
        "summary": {"length": 1.62, "time": 1180.2},
        "status_message": "Found route between points",
        "status": 0,
        "units": "kilometers",
        "language": "en-US",
    }
    return {"trip": trip}
