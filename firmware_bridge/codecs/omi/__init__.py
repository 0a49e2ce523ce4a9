"""The codec of Omi, OMI Glass and OpenGlass."""
