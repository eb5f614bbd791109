#!/bin/sh
# The method "hasty": a stand-in for an agent.  It runs in the task's workspace and may change any
# file there; what it changed is its patch.  The briefing is in $PROCTOR_BRIEFING_FILE.
set -eu
echo "working on $PROCTOR_TASK, replicate $PROCTOR_REPLICATE"
grep -m 1 -v -e '^#' -e '^$' "$PROCTOR_BRIEFING_FILE"

case $PROCTOR_TASK in
  py-intervals) # solves it
    sed -i -e 's/if merged and begin < merged/if merged and begin <= merged/' \
           -e 's/(merged\[-1\]\[0\], end)/(merged[-1][0], max(merged[-1][1], end))/' intervals.py
    python3 -m tests.run
    ;;
  sh-rotate) # repairs the order, and not names with a space
    sed -i -e 's/^n=1$/n=$((keep - 1))/' -e 's/\[ "$n" -lt "$keep" \]/[ "$n" -gt 0 ]/' \
           -e 's/n=$((n + 1))/n=$((n - 1))/' rotate
    sh t/rotate.t || echo "good enough"
    ;;
  perl-ini) # solves it the first time, gives up the second time
    if [ "$PROCTOR_REPLICATE" = 1 ]; then
      sed -i -e 's|$value =~ s/\\s\*\[;#\].\*$//;|$value =~ s/^("[^"]*"\|[^;#]*?)\\s*([;#].*)?$/$1/;|' lib/Ini.pm
    fi
    perl -Ilib t/ini.t || echo "so be it"
    ;;
  py-csvsum) # makes the tests agree instead of the program; they are put back
    printf 'import unittest\n' > tests/test_cli.py
    ;;
  c-ring) # does not compile
    sed -i -e 's/memcpy(r->bytes, from, total - first);/memcpy(r->bytes, from + first, total - first)/' ring.c
    ;;
  cpp-calc) # compiles, and never ends: no verdict of the tests can be had
    sed -i -e "s/if (take('-')) return left - sum();/while (peek() == '-') {}/" calc.cc
    ;;
  py-kvstore) # thinks for longer than the contract allows
    sleep 600
    ;;
esac
