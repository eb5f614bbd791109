"""Prints an index of the pages whose titles are the lines of its standard input."""
import sys

from slug import slug

for line in sys.stdin:
    print(f"* [{line.strip()}]({slug(line)}.html)")
