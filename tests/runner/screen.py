"""What a run shows: lines that stay, and where it is at the moment. On a terminal the moment is one line that rewrites itself;
elsewhere it is a plain line, at least every ten seconds."""
import shutil
import sys
import time

QUIET_S = 8  # at most so long nothing is said where there is no terminal


def duration(seconds):
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s" if seconds < 10 and seconds != int(seconds) else f"{seconds:.0f} s"


class Screen:
    def __init__(self, stream=None, clock=time.monotonic):
        self.stream, self.clock = stream or sys.stdout, clock
        self.terminal = self.stream.isatty()
        self.said = clock()
        self.moment_shown = False

    def line(self, text):
        """Stays."""
        self.clear()
        self.stream.write(text + "\n")
        self.stream.flush()
        self.said = self.clock()

    def moment(self, text):
        """Where the run is now: may be called at any time, writes when there is reason to."""
        if self.terminal:
            width = shutil.get_terminal_size().columns
            self.stream.write("\r\033[K" + text[:width - 1])
            self.stream.flush()
            self.moment_shown = True
        elif self.clock() - self.said >= QUIET_S:
            self.line(text)

    def clear(self):
        if self.moment_shown:
            self.stream.write("\r\033[K")
            self.moment_shown = False
