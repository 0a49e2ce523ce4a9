"""`glassd record`: every packet between glassd and the glasses into a file."""

import math
from argparse import Namespace
from contextlib import suppress

from edge.commands.shared.console import Screen
from edge.commands.shared.packet_recorder import (
    PacketRecorder,
    agree,
    check_file,
    ended_by_all_signals,
    save,
)


def record(args: Namespace, screen: Screen) -> int:
    path = check_file(args)
    agree(args, screen, "record")
    recorder = PacketRecorder(args)
    recorder.start()
    screen.note("opening a new connection to the glasses …")
    with ended_by_all_signals():
        try:
            recorder.connect()
            screen.note("recording; Ctrl-C ends it and writes the file")
            recorder.collect(args.seconds or math.inf)
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be closed
                screen.note("")
        finally:
            recorder.stop()
    return save(recorder, path, screen, sound=args.sound, photos=args.photos)
