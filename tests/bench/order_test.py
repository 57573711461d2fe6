# Orders of rounds: everything at every place, and after everything else, equally often.
# SPDX-License-Identifier: Apache-2.0
import collections
import itertools
import unittest

from bench.core.order import rounds, williams


def places(orders):
    return collections.Counter((name, place) for order in orders for place, name in enumerate(order))


def followers(orders):
    return collections.Counter(pair for order in orders for pair in itertools.pairwise(order))


class Orders(unittest.TestCase):
    def assert_balanced(self, orders, names):
        for order in orders:
            self.assertEqual(sorted(order), sorted(names))
        count = len(names)
        at = places(orders)
        self.assertEqual({at[name, place] for name in names for place in range(count)}, {len(orders) // count})
        if count > 1:
            after = followers(orders)
            self.assertEqual({after[pair] for pair in itertools.permutations(names, 2)}, {len(orders) // count})

    def test_williams_designs_are_balanced(self):
        for count in range(1, 12):
            with self.subTest(count=count):
                design = williams(count)
                self.assertEqual(len(design), count if count % 2 == 0 or count == 1 else 2 * count)
                self.assert_balanced(design, range(count))

    def test_three_take_all_six_permutations(self):
        self.assertEqual(sorted(map(tuple, williams(3))), sorted(itertools.permutations(range(3))))

    def test_two_are_first_equally_often_over_four_rounds(self):
        orders = rounds(["a", "b"], 4, seed=5)
        self.assertEqual(collections.Counter(order[0] for order in orders), {"a": 2, "b": 2})

    def test_rounds_are_whole_designs_and_at_least_as_many_as_wanted(self):
        for count, wanted, got in ((1, 3, 3), (2, 3, 4), (3, 1, 6), (3, 7, 12), (4, 8, 8), (5, 8, 10), (6, 7, 12), (7, 8, 14), (8, 9, 16)):
            names = [f"v{i}" for i in range(count)]
            orders = rounds(names, wanted, seed=1)
            self.assertEqual(len(orders), got)
            self.assert_balanced(orders, names)

    def test_the_seed_decides(self):
        names = list("abcde")
        self.assertEqual(rounds(names, 20, 3), rounds(names, 20, 3))
        self.assertNotEqual(rounds(names, 20, 3), rounds(names, 20, 4))

    def test_nothing_to_order(self):
        self.assertEqual(rounds([], 8, 0), [])


if __name__ == "__main__":
    unittest.main()
