-- Brilliant Labs Frame: what is drawn is seen when it is shown; 16 colours from one palette.

local BREAK = "break signal"
local EXPOSURES = 8

local COLOURS = {
  "VOID", "WHITE", "GREY", "RED", "PINK", "DARKBROWN", "BROWN", "ORANGE",
  "YELLOW", "DARKGREEN", "GREEN", "LIGHTGREEN", "NIGHTBLUE", "SEABLUE", "SKYBLUE", "CLOUDBLUE",
}
local palette = {}

-- Bytes of one packet after its first.
local function room()
  return frame.bluetooth.max_length()
end

local function draw_text(text, x, y, colour, spacing)
  frame.display.text(text, x, y, { color = COLOURS[colour + 1], spacing = spacing })
  -- bytes that begin a character, without spaces
  letters = letters + select(2, string.gsub(text, "[^\128-\191 ]", ""))
end

local function use_colours(colours)
  for index = 1, #colours // 3 - 1 do
    local colour = string.sub(colours, 3 * index + 1, 3 * index + 3)
    if palette[index] ~= colour then
      frame.display.assign_color(COLOURS[index + 1], string.byte(colour, 1, 3))
      palette[index] = colour
    end
  end
end

local function draw_sprite(x, y, offset)
  frame.display.bitmap(x, y, sprite.width, sprite.colours, offset, sprite.pixels)
end

local function show()
  if letters + sprites == 0 then frame.display.text(" ", 1, 1) end
  frame.display.show()
  letters, sprites = 0, 0
end

-- Drop what was drawn and not shown.
local function forget()
  if letters + sprites > 0 then show() end
end

local function set_brightness(level)
  frame.display.set_brightness(level - 2)
end

local function battery()
  return string.char(math.floor(frame.battery_level()))
end

local function motion(compass, pull)
  return compass.x, compass.y, compass.z, pull.x / 4096, pull.y / 4096, pull.z / 4096
end

local function expose()
  frame.camera.auto({})
end

local function capture(how)
  frame.camera.capture({ resolution = how.resolution, quality = how.quality, pan = how.pan })
end

local function end_photo() end

local function listen(rate)
  frame.microphone.start({ sample_rate = rate, bit_depth = 16 })
end

local function hush() end

local function tend() end
