# Timing one subject: warm-up, how many calls a sample needs, samples.
# SPDX-License-Identifier: Apache-2.0
"""A Stopwatch times one subject by one metric and walks through its sets."""
import gc
import math
import time

MOST_CALLS = 1 << 22


class Stopwatch:
    def __init__(self, subject, sets, metric, clock=time.perf_counter):
        self.subject, self.sets, self.clock = subject, sets, clock
        self.on_device, self.single = metric.startswith("gpu"), metric.endswith("single")
        self.calls, self.at = 1, 0
        self.touched = set()

    def _next(self, count):
        order = [(self.at + k) % self.sets for k in range(count)]
        self.at = (self.at + count) % self.sets
        self.touched.update(order[: self.sets])
        return order

    def _work(self, order):
        subject = self.subject
        if subject.batch:
            subject.batch(order)
            return
        run = subject.run
        for i in order:
            run(i)

    def sample(self, calls):
        """Seconds of `calls` calls, the wait for them included (or between events on the device)."""
        order = self._next(calls)
        enabled = gc.isenabled()
        gc.disable()
        try:
            if self.on_device:
                self.subject.wait()
                self.subject.clock.start()
                self._work(order)
                return self.subject.clock.stop()
            begin = self.clock()
            self._work(order)
            self.subject.wait()
            return self.clock() - begin
        finally:
            if enabled:
                gc.enable()

    def warm_up(self, seconds):
        """Calls for at least so long, at least one and every set once."""
        begin, done = self.clock(), 0
        while done < self.sets or self.clock() - begin < seconds:
            self._work(self._next(1))
            self.subject.wait()
            done += 1

    def calibrate(self, target_s):
        """Finds how many calls a sample of target_s needs."""
        if self.single:
            return
        while True:
            took = self.sample(self.calls)
            if took >= target_s or self.calls >= MOST_CALLS:
                return
            grown = math.ceil(self.calls * min(8.0, max(1.2, 1.1 * target_s / took if took > 0 else 8.0)))
            self.calls = min(grown, MOST_CALLS)

    def visit(self, settings):
        """The samples of one visit, in seconds."""
        time.sleep(settings.pause_s)
        self.warm_up(settings.warmup_s)
        return [self.sample(self.calls) for _ in range(settings.single_samples if self.single else settings.samples)]
