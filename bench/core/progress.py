# Progress on standard error: what runs, how much is done, how much time is left.
# SPDX-License-Identifier: Apache-2.0
"""One line a second on a terminal (overwritten), one every ten seconds elsewhere."""
import sys
import time


def duration(seconds):
    seconds = max(0, round(seconds))
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min {seconds % 60} s"


class Progress:
    """Work in units whose time is expected from the declared lengths until some of it has been measured."""

    def __init__(self, expected_s, stream=sys.stderr, clock=time.monotonic):
        self.expected_s, self.stream, self.clock = expected_s, stream, clock
        self.terminal = stream.isatty()
        self.begun = self.said = clock()
        self.done_s = 0.0

    def line(self, what):
        elapsed = self.clock() - self.begun
        share = min(1.0, self.done_s / self.expected_s) if self.expected_s > 0 else 1.0
        text = f"bench: {what}: {duration(elapsed)}, {share:.0%} done"
        if 0.01 < share < 1:
            return text + f", about {duration(elapsed / share - elapsed)} left"
        return text if share == 1 else text + f", about {duration(self.expected_s)} left"

    def say(self, what, now=False):
        if not now and self.clock() - self.said < (1 if self.terminal else 10):
            return
        self.said = self.clock()
        self.stream.write(("\r\x1b[K" if self.terminal else "") + self.line(what) + ("" if self.terminal else "\n"))
        self.stream.flush()

    def advance(self, expected_s, what):
        """`expected_s` of the expected time are behind us."""
        self.done_s += expected_s
        self.say(what)

    def clear(self):
        if self.terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
