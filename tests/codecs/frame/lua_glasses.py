"""The Lua machine of Frame or Halo for real: Lua 5.4 (lupa) with stubs of the firmware's `frame.*`
functions.

It has the interface of a codec, so that `FramePair` can join it to a central. Needs lupa.
"""

from collections import deque
from typing import Any

from lupa.lua54 import LuaRuntime

from firmware_bridge.codec import NEED_DATA

PROMPT_S = 0.010
FIRMWARE = "v24.179.0818"

FRAME = """
function(host)
  frame = {
    FIRMWARE_VERSION = host.firmware,
    battery_level = function() return host.battery() end,
    HARDWARE_VERSION = host.halo and "halo" or "Frame",
    battery_charging = function() return host.charging end,
    sleep = function(seconds) if coroutine.yield(seconds) then error(host.break_text, 0) end end,
    bluetooth = {
      max_length = function() return host.max_length() end,
      is_connected = function() return host.is_connected() end,
      send = function(data)
        local problem = host.send(data)
        if problem then error(problem) end
      end,
      receive_callback = function(handler) host.receive_callback(handler) end,
    },
    display = {
      text = function(text, x, y, style)
        if host.halo then return host.text(text, x, y, style, nil) end
        style = style or {}
        host.text(text, x, y, style.color, style.spacing)
      end,
      clear = function() host.clear() end,
      power_save = function(asleep) host.lens_asleep = asleep end,
      set_font = function(...) host.font = {...} end,
      brightness = function(level) host.brightness = level end,
      bitmap = function(x, y, width, colours, offset, pixels, options)
        host.bitmap(x, y, width, colours, offset, pixels)
        if options then host.use_palette(options.palette_data) end
      end,
      assign_color = function(...) host.assign_color(...) end,
      set_brightness = function(level)
        if level < -2 or level > 2 then error("brightness must be -2 to 2") end
        host.set_brightness(level)
      end,
      show = function() host.show() end,
    },
    camera = {
      auto = function() host.expose() end,
      power_save = function(asleep) host.camera_asleep = asleep end,
      capture = function(how)
        local problem = host.capture(how.resolution, how.quality, how.pan)
        if problem then error(problem) end
      end,
      image_ready = function() return host.image_ready() end,
      read = function(size) return host.read_photo(size) end,
    },
    microphone = {
      start = function(how) host.listen(how.sample_rate, how.bit_depth) end,
      stop = function() host.listen(0, 0) end,
      read = function(size)
        if host.taken_over then error("Microphone taken over by LE Audio") end
        return host.read_sound(size)
      end,
    },
    imu = {
      tap_callback = function(handler) host.tap_callback(handler) end,
      raw = function()
        local v = host.motion
        return {
          compass = { x = v[0], y = v[1], z = v[2] },
          accelerometer = { x = v[3], y = v[4], z = v[5] },
        }
      end,
      direction = function()
        if host.pitch == nil then error("IMU not initialized") end
        return { pitch = host.pitch, roll = 0.0 }
      end,
    },
    button = {
      single = function(handler) host.clicks["single"] = handler end,
      double = function(handler) host.clicks["double"] = handler end,
      long = function(handler) host.clicks["long"] = handler end,
    },
    speaker = {
      start = function(how) host.speak(how.encoder, how.sample_rate, how.bitrate) end,
      stop = function() host.speak(nil) end,
      stats = function() return host.counts() end,
    },
    file = {
      open = function(name, mode)
        host.open(name)
        return { write = function(_, text) host.write(text) end, close = function() end }
      end,
    },
  }
  print = function(value) host.print(tostring(value)) end
  require = function(module)
    local source = host.file(module)
    if not source then error("module '" .. module .. "' not found") end
    local program, problem = load(source, module)
    if not program then error(problem, 0) end
    return program()
  end
end
"""
THREADS = """
function()
  local threads = {}
  local function keep(work)
    threads[#threads + 1] = coroutine.create(work)
    return #threads
  end
  local function begin(text)
    return keep(function()
      local chunk, problem = load(text, "=[string]")
      if not chunk then error(problem, 0) end
      return chunk()
    end)
  end
  local function call(handler, data) return keep(function() handler(data) end) end
  local function resume(number, stop)
    local fine, value = coroutine.resume(threads[number], stop)
    if not fine then return "failed", tostring(value) end
    return coroutine.status(threads[number]), value
  end
  return begin, call, resume
end
"""
"""Creates, for the prompt and for a callback, what can be resumed by its number."""


class Host:
    """What the stubs do: `self.shown` are pages, each what was drawn before it was shown."""

    def __init__(self, glasses: "LuaGlasses") -> None:
        self.firmware = FIRMWARE.encode()
        self._glasses = glasses
        self.halo = glasses.halo
        self.break_text = b"interrupted" if self.halo else b"break signal"
        self.charging = False
        self.pitch: float | None = 0.0
        self.motion = [0.0] * 6
        self.lens_asleep = self.camera_asleep = True
        self.font: Any = None
        self.palettes: list[bytes] = []
        self.clicks: dict[bytes, Any] = {}
        self.speaking: tuple[Any, ...] | None = None
        self.played = {"frames_decoded": 0, "frames_write_failed": 0, "pcm_bytes": 0}
        self.counts_sound = True
        self.taken_over = False
        self.level = 87.6
        self.drawn: list[tuple[Any, ...]] = []
        self.shown: list[list[tuple[Any, ...]]] = []
        self.palette: dict[bytes, tuple[int, ...]] = {}
        self.brightness: int | None = None
        self.captured: tuple[Any, ...] | None = None
        self.exposed = 0
        self.photo = b""
        self.camera_problem: bytes | None = None
        self.sound: deque[bytes] = deque()
        self.listening: tuple[int, int] | None = None
        self.receiver: Any = None
        self.tapped: Any = None
        self.breaking = False
        """Whether a break arrives while something is sent."""
        self._file = b""

    def battery(self):
        return self.level

    def max_length(self):
        return self._glasses.max_packet - 1

    def is_connected(self):
        return self._glasses.connected

    def send(self, data):
        if len(data) > self.max_length():
            return b"string length is greater than max_length()"
        if self.breaking:
            return self.break_text
        if not self._glasses.connected:
            return b"not connected"
        return self._glasses.notify(b"\x01" + data)

    def print(self, text):
        self._glasses.notify(text)

    def receive_callback(self, handler):
        self.receiver = handler

    def tap_callback(self, handler):
        self.tapped = handler

    def text(self, *what):
        self.drawn.append(("text", *what))

    def bitmap(self, *what):
        self.drawn.append(("bitmap", *what))

    def assign_color(self, name, *colour):
        self.palette[name] = colour

    def set_brightness(self, level):
        self.brightness = level

    def show(self):
        self.shown.append(self.drawn)
        self.drawn = []

    def clear(self):
        """What is drawn on a Halo from here on is a new picture."""
        self.shown.append([])
        self.drawn = self.shown[-1]

    def use_palette(self, palette):
        self.palettes.append(palette)

    def speak(self, encoder, rate=0, bitrate=0):
        self.speaking = (encoder, rate, bitrate) if encoder else None

    def counts(self):
        return self._glasses.table(self.played)

    def expose(self):
        self.exposed += 1

    def capture(self, *how):
        self.captured = how
        return self.camera_problem

    def image_ready(self):
        return True

    def read_photo(self, size):
        part, self.photo = self.photo[:size], self.photo[size:]
        return part or None

    def listen(self, rate, depth):
        self.listening = (rate, depth) if rate else None

    def read_sound(self, size):
        if self.sound:
            assert size % 2 == 0
            part = self.sound.popleft()
            if len(part) > size:
                self.sound.appendleft(part[size:])
            return part[:size]
        return b"" if self.listening else None

    def open(self, name):
        self._file = name
        self._glasses.files[name] = b""

    def write(self, text):
        self._glasses.files[self._file] += text

    def file(self, module):
        return self._glasses.files.get(module + b".lua")


class LuaGlasses:
    """The machine with its radio: one notification at a time, one buffer for each kind of packet.
    `files` and the running program outlive connections.
    """

    def __init__(self, *, max_packet: int = 244, halo: bool = False) -> None:
        self.max_packet = max_packet
        self.halo = halo
        self.connected = True
        self.files: dict[bytes, bytes] = {}
        self._slot: bytes | None = None
        self.now = 0.0
        self._reset()

    def _reset(self) -> None:
        self.host = Host(self)
        self._lua = LuaRuntime(encoding=None, unpack_returned_tuples=True)
        self._lua.eval(FRAME)(self.host)
        if self.halo:
            self._lua.execute("frame.camera.auto = nil; frame.display.assign_color = nil")
        self._begin, self._call, self._resume = self._lua.eval(THREADS)()
        self._running: Any = None
        self._wakes = 0.0
        self._callbacks: deque[Any] = deque()
        self._prompt: tuple[float, bytes] | None = None
        self._received: bytes | None = None

    @property
    def runs(self) -> bool:
        return self._running is not None

    def notify(self, packet: bytes) -> bytes | None:
        if self._slot is not None:
            return b"bluetooth is busy"
        self._slot = packet
        return None

    # -------------------------------------------------------------- as a codec

    def receive_packet(self, packet: bytes, now: float) -> None:
        self.now = now
        if packet == b"\x03":
            self._break()
        elif packet == b"\x04":
            if self._running is None or self.halo:
                self._reset()
        elif packet[0] == 1:
            if self.host.receiver is not None:
                self._callbacks.append(self._call(self.host.receiver, packet[1:]))
        else:
            self._prompt = now + PROMPT_S, packet
        self._step(now)

    def handle_timer(self, now: float) -> None:
        self.now = now
        self._step(now)

    def next_timer(self) -> float | None:
        due = [] if self._prompt is None or self.runs else [self._prompt[0]]
        due += [self._wakes] if self.runs else []
        return min(due, default=None)

    def packets_to_send(self, _now: float) -> list[bytes]:
        packet, self._slot = self._slot, None
        return [] if packet is None else [packet]

    def next_event(self):
        return NEED_DATA

    def tap(self, kind: bytes | None = None) -> None:
        self.host.tapped(kind)

    def table(self, values: dict[str, int]) -> Any:
        return self._lua.table_from({name.encode(): value for name, value in values.items()})

    def without_counts(self) -> None:
        """Be a firmware that does not count what the speaker played."""
        self._lua.execute("frame.speaker.stats = nil")

    # -------------------------------------------------------------- Lua

    def _break(self) -> None:
        if self._running is not None:
            self._go_on(stop=True)

    def _step(self, now: float) -> None:
        while self._callbacks:
            state, value = self._resume(self._callbacks[0], False)
            if state == b"suspended":
                break
            self._callbacks.popleft()
            assert state == b"dead", value
        if self._running is not None and now >= self._wakes:
            self._go_on(stop=False)
        elif self._running is None and self._prompt is not None and now >= self._prompt[0]:
            text = self._prompt[1].partition(b"\0")[0]
            self._prompt, self._running = None, self._begin(text)
            self._go_on(stop=False)

    def _go_on(self, *, stop: bool) -> None:
        state, value = self._resume(self._running, stop)
        if state == b"suspended":
            self._wakes = self.now + float(value)
            return
        self._running = None
        if state == b"failed":
            self.notify(b'[string "' + b'..."]:1: ' + value)
