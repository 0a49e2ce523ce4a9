-- The program that glassd runs on Brilliant Labs Frame and Halo: it draws pages, and sends taps,
-- battery, photos and sound. One message at a time: its last packet is acknowledged when it was
-- carried out. What differs between the two is in hardware_frame.lua and hardware_halo.lua.

local BUILD = "@BUILD@"

local CARRIED_OUT, REFUSED = "\0", "\1"
local SOUND, SOUND_END, PHOTO, PHOTO_END, TAP, BATTERY = "\5", "\6", "\7", "\8", "\9", "\12"
local MOTION = 0x0a
local INFO, SHOWN, HEAD = "\64", "\65", "\67"
local HELLO = 0x33

local MAX_MESSAGE = 8192
local MAX_NEWS = 32
local POLL_S = 0.005
local BUSY_S, BUSY_TRIES = 0.0025, 800
local PASSES_BETWEEN = 20
local PACKETS_A_PASS = 4
local SLOW_PASSES = 50
local HEAD_BACK = 10

local QUALITIES = { "VERY_LOW", "LOW", "MEDIUM", "HIGH", "VERY_HIGH" }
local RATES = { 8000, 16000 }
local KINDS = { single = "\1", double = "\2", triple = "\3" }

local incoming, complete = {}, {}
local letters, sprites, sprite = 0, 0, nil
local news, listening, photo = {}, false, nil
local head = { angle = 25, up = false }
local passes = 0
local handlers = {}

local function number(data, at)
  local high, low = string.byte(data, at, at + 1)
  return high * 256 + low
end

local function two_bytes(value)
  return string.char(value // 256 % 256, value % 256)
end

-- Keep what happened, to be sent outside of the firmware's callback.
local function note(what)
  if #news < MAX_NEWS then news[#news + 1] = what end
end

local send

@HARDWARE@

local function is_break(problem)
  return string.find(tostring(problem), BREAK, 1, true) ~= nil
end

-- Send one packet; wait while the radio is busy. Return false if there is nobody to send to.
function send(data)
  for _ = 1, BUSY_TRIES do
    local sent, problem = pcall(frame.bluetooth.send, data)
    if sent then return true end
    if is_break(problem) then error(problem, 0) end
    problem = tostring(problem)
    local busy = string.find(problem, "busy", 1, true) or string.find(problem, "send failed", 1, true)
    if not busy then return false end
    frame.sleep(BUSY_S)
  end
  return false
end

-- ---------------------------------------------------------------- messages from glassd

local function add(packet)
  local code = string.byte(packet, 1)
  if code == HELLO then incoming = {} end -- what was left of an earlier connection
  local message = incoming[code]
  if message == nil then
    message = { size = number(packet, 2), have = 0 }
    if message.size > MAX_MESSAGE then error("a message of " .. message.size .. " bytes") end
    incoming[code] = message
    packet = string.sub(packet, 4)
  else
    packet = string.sub(packet, 2)
  end
  message[#message + 1] = packet
  message.have = message.have + #packet
  if message.have < message.size then return false end
  incoming[code] = nil
  if message.have > message.size then error("more bytes than announced") end
  complete[#complete + 1] = { code = code, data = table.concat(message) }
  return true
end

local function refuse(problem)
  if is_break(problem) then error(problem, 0) end
  print("Error in data accumulator: " .. tostring(problem))
  send(REFUSED)
end

local function receive(packet)
  local fine, over = pcall(add, packet)
  if not fine then
    if #packet > 0 then incoming[string.byte(packet, 1)] = nil end
    refuse(over)
  elseif not over then
    send(CARRIED_OUT)
  end
end

local function info()
  local charge = string.char(math.floor(frame.battery_level()))
  send(INFO .. charge .. BUILD .. tostring(frame.FIRMWARE_VERSION))
end

-- What is complete came after it, and stays.
handlers[HELLO] = function()
  news, photo = {}, nil
  if listening then pcall(frame.microphone.stop) end
  listening, head.up = false, false
  hush()
  forget()
  info()
end

handlers[0x31] = function()
  send(BATTERY .. battery())
end

handlers[0x0a] = function(data)
  local colour, spacing = string.byte(data, 5, 6)
  draw_text(string.sub(data, 7), number(data, 1), number(data, 3), colour, spacing)
end

handlers[0x20] = function(data)
  local bits, colours = string.byte(data, 6, 7)
  local palette = string.sub(data, 8, 7 + 3 * colours)
  use_colours(palette)
  sprite = {
    width = number(data, 1),
    colours = 1 << bits,
    palette = palette,
    pixels = string.sub(data, 8 + 3 * colours),
  }
end

handlers[0x21] = function(data)
  draw_sprite(number(data, 2), number(data, 4), string.byte(data, 6))
  sprites, sprite = sprites + 1, nil
end

handlers[0x22] = function(data)
  local drawn = string.sub(data, 1, 2) .. two_bytes(letters) .. two_bytes(sprites)
  show()
  send(SHOWN .. drawn)
end

handlers[0x32] = function(data)
  set_brightness(string.byte(data, 1))
end

handlers[0x36] = function(data)
  head.angle = string.byte(data, 1)
end

-- As brilliant-msg 7.3.0: compass, then acceleration in g; right, forward, up.
handlers[0x37] = function()
  local raw = frame.imu.raw()
  send(string.pack("<Bxffffff", MOTION, motion(raw.compass, raw.accelerometer)))
end

handlers[0x0d] = function(data)
  if photo ~= nil then error("a photo is being taken") end
  photo = {
    quality = QUALITIES[string.byte(data, 1) + 1],
    resolution = 2 * number(data, 2),
    pan = number(data, 4) - 140,
    exposures = EXPOSURES,
    passes = 0,
    sent = 0,
  }
end

handlers[0x30] = function(data)
  local rate = RATES[string.byte(data, 1)]
  if rate == nil then
    frame.microphone.stop()
  else
    listen(rate)
    listening = true
  end
end

local function carry_out(message)
  local handler = handlers[message.code]
  if handler == nil then error("no message " .. message.code) end
  handler(message.data)
end

-- ---------------------------------------------------------------- what goes on by itself

-- The light is measured some times, 0.1 s apart, before the picture is taken.
local function take_photo()
  if photo.exposures > 0 then
    if photo.passes % PASSES_BETWEEN == 0 then
      photo.exposures = photo.exposures - 1
      expose()
    end
    photo.passes = photo.passes + 1
    return
  end
  if not photo.taken then
    capture(photo)
    photo.taken = true
  end
  if not frame.camera.image_ready() then return end
  for _ = 1, PACKETS_A_PASS do
    local data = frame.camera.read(room() - 1)
    if data == nil then
      send(PHOTO_END .. two_bytes(photo.sent // 65536) .. two_bytes(photo.sent))
      photo = nil
      end_photo()
      return
    end
    if not send(PHOTO .. data) then error("a part of the photo was not sent") end
    photo.sent = photo.sent + #data
  end
end

-- Another use of the microphone may have ended this one.
local function read_sound(bytes)
  local fine, data = pcall(frame.microphone.read, bytes)
  if not fine and is_break(data) then error(data, 0) end
  return fine and data or nil
end

local function send_sound()
  local bytes = (room() - 1) // 2 * 2
  for _ = 1, PACKETS_A_PASS do
    local data = read_sound(bytes)
    if data == nil then
      listening = false
      send(SOUND_END)
      return
    end
    if data == "" then return end
    if not send(SOUND .. data) then
      pcall(frame.microphone.stop)
      listening = false
      return
    end
  end
end

-- Say when the wearer looks up, and when no longer.
local function watch_head()
  if head.angle == 0 then return end
  local fine, direction = pcall(frame.imu.direction)
  if not fine then
    if is_break(direction) then error(direction, 0) end
    return
  end
  local up = direction.pitch >= (head.up and head.angle - HEAD_BACK or head.angle)
  if up ~= head.up then
    head.up = up
    note(HEAD .. (up and "\1" or "\0"))
  end
end

local function pass()
  local message = table.remove(complete, 1)
  if message ~= nil then
    local fine, problem = pcall(carry_out, message)
    if fine then send(CARRIED_OUT) else refuse(problem) end
  end
  passes = (passes + 1) % SLOW_PASSES
  if passes == 0 then
    watch_head()
    tend()
  end
  while #news > 0 do send(table.remove(news, 1)) end
  if listening then send_sound() end
  if photo ~= nil then
    local fine, problem = pcall(take_photo)
    if not fine then
      if is_break(problem) then error(problem, 0) end
      photo = nil
      end_photo()
      print("Error in photo: " .. tostring(problem))
      send(PHOTO_END .. "\255\255\255\255")
    end
  end
end

pcall(frame.imu.tap_callback, function(kind) note(TAP .. (KINDS[kind] or "")) end)
frame.bluetooth.receive_callback(receive)
info()
while true do
  pass()
  frame.sleep(POLL_S)
end
