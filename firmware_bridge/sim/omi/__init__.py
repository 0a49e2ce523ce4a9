"""The simulator of Omi, OMI Glass and OpenGlass."""
