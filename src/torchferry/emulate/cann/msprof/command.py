"""The command line, as far as the plugin uses it: --export=on and --analyze=on of one PROF_... folder."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from torchferry.emulate.cann.msprof import tables, timeline
from torchferry.emulate.cann.msprof.records import NoProfileError, Profile, read_profile

_ON_OFF = ("on", "off")
# The plugin looks for a table every 100 ms while this runs. If it has not seen one by the end, and has nothing else to
# wait for, it takes the export for failed: prof.export_chrome_trace would leave half a file.
_TIME_TO_BE_SEEN = 0.5


def main(arguments: list[str]) -> int:
    """Do what the options say; 0, or 1 where there is nothing to read."""
    # What follows --help is read by the plugin: "--type" there would mean that databases can be written, too.
    parser = argparse.ArgumentParser(prog="msprof", description="The emulated CANN's profiles, as text.")
    parser.add_argument("--export", choices=_ON_OFF, default="off", help="write tables and the timeline")
    parser.add_argument("--analyze", choices=_ON_OFF, default="off", help="write the times of collectives")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="the PROF_... folder")
    args = parser.parse_args(arguments)
    folder = Path(args.output)
    try:
        profile = read_profile(folder)
        if args.export == "on":
            export(profile, folder / "mindstudio_profiler_output")
            time.sleep(_TIME_TO_BE_SEEN)
        if args.analyze == "on":
            tables.write_communication(profile, folder / "analyze")
    except (NoProfileError, OSError) as error:
        print(f"msprof: {error}", file=sys.stderr)
        return 1
    return 0


def export(profile: Profile, output: Path) -> None:
    """The tables and the timeline, under the names that have the time in them. The tables come last: who waits for
    them finds all there."""
    output.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d%H%M%S")
    timeline.write(profile, output / f"msprof_{stamp}.json")
    for name, table in tables.all_tables(profile).items():
        table.write(output / f"{name}_{stamp}.csv")
