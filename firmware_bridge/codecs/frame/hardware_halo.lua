-- Brilliant Labs Halo: what is drawn is seen at once, so a page is kept until it is whole. It has a
-- speaker and a button, and says itself which taps belong together.

local BREAK = "interrupted"
local EXPOSURES = 5
local PLAYED, CLICK = "\66", "\11"
local SINGLE, DOUBLE, LONG = "\1", "\2", "\3"
local MOST_ROOM = 240

local page = {}
local coded, speaking = false, false

frame.display.set_font(0, 8, 1)
frame.display.clear(0)

-- Bytes of one packet after its first: with its headers it fits one packet of the radio. How many
-- of the headers max_length() has left out is not said.
local function room()
  return math.min(frame.bluetooth.max_length() - 3, MOST_ROOM)
end

local function draw_text(text, x, y)
  page[#page + 1] = function() frame.display.text(text, x, y, 0xffffff) end
  -- its font has no others
  letters = letters + select(2, string.gsub(text, "[!-~]", ""))
end

local function use_colours() end

local function draw_sprite(x, y, offset)
  local drawn = sprite
  page[#page + 1] = function()
    local options = { palette_data = drawn.palette }
    frame.display.bitmap(x, y, drawn.width, drawn.colours, offset, drawn.pixels, options)
  end
end

local function forget()
  page, letters, sprites = {}, 0, 0
end

-- The lens sleeps until a program wakes it, and again while nothing is shown.
local function show()
  local whole = page
  forget()
  frame.display.clear(0)
  for _, draw in ipairs(whole) do draw() end
  frame.display.power_save(#whole == 0)
end

local function set_brightness(level)
  frame.display.brightness(math.max(10, 25 * level))
end

local function battery()
  local charging = frame.battery_charging and frame.battery_charging()
  return string.char(math.floor(frame.battery_level()), charging and 1 or 0)
end

-- Its two sensors lie in different directions.
local function motion(compass, pull)
  local right, forward, up = -pull.z / 1000, pull.y / 1000, pull.x / 1000
  return compass.x, compass.z, -compass.y, right, forward, up
end

-- The camera measures the light itself while it is awake.
local function expose()
  frame.camera.power_save(false)
end

local function capture(how)
  frame.camera.capture({ resolution = how.resolution, quality = how.quality })
end

local function end_photo()
  pcall(function() frame.camera.power_save(true) end)
end

local function listen(rate)
  frame.microphone.start({ encoder = "pcm", sample_rate = rate, bit_depth = 16, channels = 1 })
end

local function hush()
  if speaking then pcall(frame.speaker.stop) end
  speaking = false
end

-- Nobody sends the rest of what a lost connection began.
local function tend()
  if speaking and not frame.bluetooth.is_connected() then hush() end
end

-- Sound itself comes over a characteristic of its own.
handlers[0x34] = function(data)
  coded = string.byte(data, 1) == 1
  local how = { encoder = "pcm", sample_rate = 16000, channels = 1, bit_depth = 16 }
  if coded then
    how = { encoder = "lc3", sample_rate = 16000, channels = 1, duration = 1000, bitrate = 32000 }
  end
  pcall(frame.speaker.stop)
  frame.speaker.start(how)
  speaking = true
  if frame.speaker.stats then frame.speaker.stats(true) end
end

handlers[0x35] = function()
  local samples = ""
  if frame.speaker.stats then
    local counts = frame.speaker.stats(true)
    local count = counts.pcm_bytes // 2
    if coded then count = (counts.frames_decoded - counts.frames_write_failed) * 160 end
    samples = two_bytes(count // 65536) .. two_bytes(count)
  end
  hush()
  send(PLAYED .. samples)
end

frame.button.single(function() note(CLICK .. SINGLE) end)
frame.button.double(function() note(CLICK .. DOUBLE) end)
frame.button.long(function() note(CLICK .. LONG) end)
