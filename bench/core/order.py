# In which order the variants run in each round.
# SPDX-License-Identifier: Apache-2.0
"""Balanced orders: Williams designs, whole ones only."""
import random


def williams(count):
    """Rows of 0 .. count - 1: over all rows everything stands at every place equally often, and every ordered pair of neighbours occurs
    equally often. `count` rows, or twice as many for an odd count (then for 3 they are all six permutations)."""
    if count < 2:
        return [[0]] * count
    first, low, high = [0], 1, count - 1
    while low <= high:
        first.append(low)
        if low < high:
            first.append(high)
        low, high = low + 1, high - 1
    rows = [[(place + shift) % count for place in first] for shift in range(count)]
    return rows + [row[::-1] for row in rows] if count % 2 else rows


def design(count):
    """How many rounds a whole design of so many has."""
    return len(williams(count))


def rounds(names, at_least, seed):
    """The orders of the rounds: whole designs until there are `at_least` rounds. Each design gives its rows to the names anew, so that
    the seed decides who is first."""
    draw, orders = random.Random(seed), []
    while names and len(orders) < at_least:
        labels = list(names)
        draw.shuffle(labels)
        orders += [[labels[place] for place in row] for row in williams(len(labels))]
    return orders
