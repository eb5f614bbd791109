import unittest

from intervals import IntervalSet


class Making(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(IntervalSet().ranges, [])
        self.assertEqual(len(IntervalSet([(3, 3)])), 0)

    def test_sorts(self):
        self.assertEqual(IntervalSet([(7, 9), (1, 4)]).ranges, [(1, 4), (7, 9)])

    def test_overlap_becomes_one(self):
        self.assertEqual(IntervalSet([(1, 5), (3, 9)]).ranges, [(1, 9)])

    def test_touching_becomes_one(self):
        self.assertEqual(IntervalSet([(1, 4), (4, 9)]).ranges, [(1, 9)])

    def test_contained_adds_nothing(self):
        self.assertEqual(IntervalSet([(1, 9), (3, 5)]).ranges, [(1, 9)])

    def test_backwards_is_refused(self):
        with self.assertRaises(ValueError):
            IntervalSet([(4, 1)])


class Asking(unittest.TestCase):
    def test_contains(self):
        numbers = IntervalSet([(1, 4), (7, 9)])
        self.assertEqual([n for n in range(11) if n in numbers], [1, 2, 3, 7, 8])

    def test_equal(self):
        self.assertEqual(IntervalSet([(1, 4), (6, 8)]), IntervalSet([(6, 8), (1, 4)]))


class Combining(unittest.TestCase):
    def test_union(self):
        union = IntervalSet([(1, 4)]).union(IntervalSet([(3, 6), (8, 9)]))
        self.assertEqual(union.ranges, [(1, 6), (8, 9)])

    def test_intersection(self):
        both = IntervalSet([(1, 6), (8, 12)]).intersection(IntervalSet([(4, 9)]))
        self.assertEqual(both.ranges, [(4, 6), (8, 9)])

    def test_complement_of_nested(self):
        rest = IntervalSet([(2, 8), (3, 4)]).complement(0, 10)
        self.assertEqual(rest.ranges, [(0, 2), (8, 10)])
