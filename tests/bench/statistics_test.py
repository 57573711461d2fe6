# Summaries and paired ratios on samples whose answers are known.
# SPDX-License-Identifier: Apache-2.0
import unittest

import numpy as np

from bench.core.statistics import median, paired, quantile, summary


class Statistics(unittest.TestCase):
    def test_medians_and_quartiles(self):
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([4, 1, 3, 2]), 2.5)
        self.assertEqual(
            summary([5, 1, 4, 2, 3]), {"count": 5, "median": 3, "q1": 2, "q3": 4, "min": 1, "max": 5}
        )
        self.assertEqual(summary([7.0]), {"count": 1, "median": 7, "q1": 7, "q3": 7, "min": 7, "max": 7})
        values = list(np.random.default_rng(0).exponential(size=101))
        for share in (0, 0.1, 0.25, 0.5, 0.9, 1):
            self.assertAlmostEqual(quantile(values, share), np.quantile(values, share), places=14)

    def test_a_ratio_is_paired_within_its_round(self):
        # The machine was twice as slow in the second round: the ratio of the medians would say 1.5, the rounds say 1.
        pair = paired([10, 20, 10], [10, 20, 10])
        self.assertEqual((pair["median"], pair["low"], pair["high"]), (1, 1, 1))
        self.assertEqual((pair["better"], pair["worse"], pair["equal"]), (0, 0, 3))
        variant, baseline = [1, 10, 100], [2, 5, 1000]
        pair = paired(variant, baseline)
        self.assertEqual(pair["ratios"], [0.5, 2, 0.1])
        self.assertEqual((pair["median"], pair["low"], pair["high"]), (0.5, 0.1, 2))
        self.assertNotEqual(pair["median"], median(variant) / median(baseline))
        self.assertEqual((pair["better"], pair["worse"], pair["equal"]), (2, 1, 0))

    def test_rounds_that_do_not_pair_are_refused(self):
        for variant, baseline in (([1], [1, 2]), ([], [])):
            with self.assertRaises(ValueError):
                paired(variant, baseline)


if __name__ == "__main__":
    unittest.main()
