#!/usr/bin/env python3
"""bleu.py FILE: processor seconds for BLEU (n = 2) of the pairs in FILE (two lines each), and the sum of the scores.

With NLTK where it is installed; else with a plain Python BLEU of the same formula, and it says which.
"""
import collections
import math
import sys
import time

try:
    from nltk.translate.bleu_score import sentence_bleu
    NAME = "nltk"

    def bleu(candidate, reference):
        return sentence_bleu([reference.split()], candidate.split(), weights=(0.5, 0.5))
except ImportError:
    NAME = "plain"

    def matches(candidate, reference, n):
        pairs = collections.Counter(zip(*(candidate[i:] for i in range(n))))
        known = collections.Counter(zip(*(reference[i:] for i in range(n))))
        return sum(min(count, known[key]) for key, count in pairs.items()), max(1, sum(pairs.values()))

    def bleu(candidate, reference):
        c, r = candidate.split(), reference.split()
        shared, words = matches(c, r, 1)
        if shared == 0:
            return 0
        both, pairs = matches(c, r, 2)
        penalty = 1.0 if len(r) < len(c) else math.exp(1 - len(r) / len(c))
        second = both / pairs if both else sys.float_info.min
        return penalty * math.exp(0.5 * math.log(shared / words) + 0.5 * math.log(second))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().split("\n")
    pairs = list(zip(lines[0::2], lines[1::2]))
    start = time.process_time()
    scores = [bleu(candidate, reference) for candidate, reference in pairs]
    print(NAME, repr(time.process_time() - start), repr(math.fsum(scores)))


if __name__ == "__main__":
    main()
