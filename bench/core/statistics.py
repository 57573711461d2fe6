# What is said about raw samples, and nothing else: no ratio of medians, no differences.
# SPDX-License-Identifier: Apache-2.0
"""Summaries of samples and paired ratios of rounds, on plain lists of floats."""


def quantile(values, share):
    """The value at `share` (0 .. 1) of the sorted values, linear between neighbours."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def summary(values):
    """count, median, q1, q3, min, max of at least one value."""
    return {
        "count": len(values),
        "median": median(values),
        "q1": quantile(values, 0.25),
        "q3": quantile(values, 0.75),
        "min": min(values),
        "max": max(values),
    }


def paired(variant, baseline):
    """The ratios variant / baseline of times, round by round (two lists of one value a round), their median and range, and in how many
    rounds the variant took less time, more, or the same."""
    if len(variant) != len(baseline) or not variant:
        raise ValueError(f"rounds do not pair: {len(variant)} of the variant, {len(baseline)} of the baseline")
    ratios = [ours / theirs for ours, theirs in zip(variant, baseline)]
    return {
        "ratios": ratios,
        "median": median(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "better": sum(ratio < 1 for ratio in ratios),
        "worse": sum(ratio > 1 for ratio in ratios),
        "equal": sum(ratio == 1 for ratio in ratios),
    }
