"""Sets of whole numbers as half-open ranges [begin, end), sorted, disjoint and as few as possible."""


class IntervalSet:
    def __init__(self, ranges=()):
        self._ranges = _normal(ranges)

    @property
    def ranges(self):
        return list(self._ranges)

    def __contains__(self, number):
        low, high = 0, len(self._ranges)
        while low < high:
            middle = (low + high) // 2
            begin, end = self._ranges[middle]
            if number < begin:
                high = middle
            elif number >= end:
                low = middle + 1
            else:
                return True
        return False

    def __len__(self):
        return sum(end - begin for begin, end in self._ranges)

    def __eq__(self, other):
        return isinstance(other, IntervalSet) and self._ranges == other._ranges

    def union(self, other):
        return IntervalSet(self._ranges + other._ranges)

    def intersection(self, other):
        found, mine, theirs = [], 0, 0
        while mine < len(self._ranges) and theirs < len(other._ranges):
            a, b = self._ranges[mine], other._ranges[theirs]
            begin, end = max(a[0], b[0]), min(a[1], b[1])
            if begin < end:
                found.append((begin, end))
            if a[1] < b[1]:
                mine += 1
            else:
                theirs += 1
        return IntervalSet(found)

    def complement(self, begin, end):
        """What of [begin, end) is not in the set."""
        found, at = [], begin
        for low, high in self.intersection(IntervalSet([(begin, end)]))._ranges:
            if at < low:
                found.append((at, low))
            at = high
        if at < end:
            found.append((at, end))
        return IntervalSet(found)


def _normal(ranges):
    merged = []
    for begin, end in sorted(ranges):
        if begin > end:
            raise ValueError(f"a range ends before it begins: [{begin}, {end})")
        if begin == end:
            continue
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged
