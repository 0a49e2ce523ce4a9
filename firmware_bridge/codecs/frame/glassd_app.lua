-- The program that glassd runs on Brilliant Labs Frame: it draws pages, and sends taps, battery,
-- photos and sound. One message at a time: its last packet is acknowledged when it was carried out.

local BUILD = "@BUILD@"

local CARRIED_OUT, REFUSED = "\0", "\1"
local SOUND, SOUND_END, PHOTO, PHOTO_END, TAP, BATTERY = "\5", "\6", "\7", "\8", "\9", "\12"
local INFO, SHOWN = "\64", "\65"
local HELLO = 0x33

local MAX_MESSAGE = 8192
local POLL_S = 0.005
local BUSY_S, BUSY_TRIES = 0.0025, 800
local EXPOSURES, PASSES_BETWEEN = 8, 20
local PACKETS_A_PASS = 4

local COLOURS = {
  "VOID", "WHITE", "GREY", "RED", "PINK", "DARKBROWN", "BROWN", "ORANGE",
  "YELLOW", "DARKGREEN", "GREEN", "LIGHTGREEN", "NIGHTBLUE", "SEABLUE", "SKYBLUE", "CLOUDBLUE",
}
local QUALITIES = { "VERY_LOW", "LOW", "MEDIUM", "HIGH", "VERY_HIGH" }
local RATES = { 8000, 16000 }

local incoming, complete = {}, {}
local sprite, palette = nil, {}
local letters, sprites = 0, 0
local taps, listening, photo = 0, false, nil

local function is_break(problem)
  return string.find(tostring(problem), "break signal", 1, true) ~= nil
end

-- Send one packet; wait while the radio is busy. Return false if there is nobody to send to.
local function send(data)
  for _ = 1, BUSY_TRIES do
    local sent, problem = pcall(frame.bluetooth.send, data)
    if sent then return true end
    if is_break(problem) then error(problem, 0) end
    if not string.find(tostring(problem), "busy", 1, true) then return false end
    frame.sleep(BUSY_S)
  end
  return false
end

local function number(data, at)
  local high, low = string.byte(data, at, at + 1)
  return high * 256 + low
end

local function two_bytes(value)
  return string.char(value // 256 % 256, value % 256)
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

local function show()
  if letters + sprites == 0 then frame.display.text(" ", 1, 1) end
  frame.display.show()
  letters, sprites = 0, 0
end

local function info()
  local charge = string.char(math.floor(frame.battery_level()))
  send(INFO .. charge .. BUILD .. tostring(frame.FIRMWARE_VERSION))
end

local handlers = {}

-- What is complete came after it, and stays.
handlers[HELLO] = function()
  taps, photo = 0, nil
  if listening then pcall(frame.microphone.stop) end
  listening = false
  if letters + sprites > 0 then show() end
  info()
end

handlers[0x31] = function()
  send(BATTERY .. string.char(math.floor(frame.battery_level())))
end

handlers[0x0a] = function(data)
  local colour, spacing = string.byte(data, 5, 6)
  local text = string.sub(data, 7)
  local style = { color = COLOURS[colour + 1], spacing = spacing }
  frame.display.text(text, number(data, 1), number(data, 3), style)
  -- bytes that begin a character, without spaces
  letters = letters + select(2, string.gsub(text, "[^\128-\191 ]", ""))
end

handlers[0x20] = function(data)
  local bits, colours = string.byte(data, 6, 7)
  for index = 1, colours - 1 do
    local at = 8 + 3 * index
    local colour = string.sub(data, at, at + 2)
    if palette[index] ~= colour then
      frame.display.assign_color(COLOURS[index + 1], string.byte(colour, 1, 3))
      palette[index] = colour
    end
  end
  sprite = { width = number(data, 1), colours = 1 << bits, pixels = string.sub(data, 8 + 3 * colours) }
end

handlers[0x21] = function(data)
  local x, y, offset = number(data, 2), number(data, 4), string.byte(data, 6)
  frame.display.bitmap(x, y, sprite.width, sprite.colours, offset, sprite.pixels)
  sprites, sprite = sprites + 1, nil
end

handlers[0x22] = function(data)
  local drawn = string.sub(data, 1, 2) .. two_bytes(letters) .. two_bytes(sprites)
  show()
  send(SHOWN .. drawn)
end

handlers[0x32] = function(data)
  frame.display.set_brightness(string.byte(data, 1) - 2)
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
    frame.microphone.start({ sample_rate = rate, bit_depth = 16 })
    listening = true
  end
end

local function carry_out(message)
  local handler = handlers[message.code]
  if handler == nil then error("no message " .. message.code) end
  handler(message.data)
end

-- ---------------------------------------------------------------- what goes on by itself

-- The exposure is measured some times, 0.1 s apart, before the picture is taken.
local function take_photo()
  if photo.exposures > 0 then
    if photo.passes % PASSES_BETWEEN == 0 then
      photo.exposures = photo.exposures - 1
      frame.camera.auto({})
    end
    photo.passes = photo.passes + 1
    return
  end
  if not photo.taken then
    frame.camera.capture({ resolution = photo.resolution, quality = photo.quality, pan = photo.pan })
    photo.taken = true
  end
  if not frame.camera.image_ready() then return end
  for _ = 1, PACKETS_A_PASS do
    local data = frame.camera.read(frame.bluetooth.max_length() - 1)
    if data == nil then
      send(PHOTO_END .. two_bytes(photo.sent // 65536) .. two_bytes(photo.sent))
      photo = nil
      return
    end
    if not send(PHOTO .. data) then error("a part of the photo was not sent") end
    photo.sent = photo.sent + #data
  end
end

local function send_sound()
  local room = (frame.bluetooth.max_length() - 1) // 2 * 2
  for _ = 1, PACKETS_A_PASS do
    local data = frame.microphone.read(room)
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

local function pass()
  local message = table.remove(complete, 1)
  if message ~= nil then
    local fine, problem = pcall(carry_out, message)
    if fine then send(CARRIED_OUT) else refuse(problem) end
  end
  while taps > 0 do
    taps = taps - 1
    send(TAP)
  end
  if listening then send_sound() end
  if photo ~= nil then
    local fine, problem = pcall(take_photo)
    if not fine then
      if is_break(problem) then error(problem, 0) end
      photo = nil
      print("Error in photo: " .. tostring(problem))
      send(PHOTO_END .. "\255\255\255\255")
    end
  end
end

frame.imu.tap_callback(function() taps = taps + 1 end)
frame.bluetooth.receive_callback(receive)
info()
while true do
  pass()
  frame.sleep(POLL_S)
end
