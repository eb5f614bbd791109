#!/bin/sh
# The method "careful": a stand-in for a better agent than hasty.sh.  It repairs every program and runs its
# tests, but for those of a language that is not there.
set -eu
echo "working on $PROCTOR_TASK, replicate $PROCTOR_REPLICATE"
grep -m 1 -v -e '^#' -e '^$' "$PROCTOR_BRIEFING_FILE"

case $PROCTOR_TASK in
  py-intervals)
    sed -i -e 's/if merged and begin < merged/if merged and begin <= merged/' \
           -e 's/(merged\[-1\]\[0\], end)/(merged[-1][0], max(merged[-1][1], end))/' intervals.py
    ;;
  sh-rotate)
    sed -i -e 's/^n=1$/n=$((keep - 1))/' -e 's/\[ "$n" -lt "$keep" \]/[ "$n" -gt 0 ]/' \
           -e 's/n=$((n + 1))/n=$((n - 1))/' -e 's/^mv $file/mv "$file"/' rotate
    sh t/rotate.t
    ;;
  perl-ini)
    sed -i -e 's|$value =~ s/\\s\*\[;#\].\*$//;|$value =~ s/^("[^"]*"\|[^;#]*?)\\s*([;#].*)?$/$1/;|' lib/Ini.pm
    perl -Ilib t/ini.t
    ;;
  py-csvsum)
    sed -i -e 's/replace(",", ".")/replace(",", "")/' csvsum
    ;;
  c-ring)
    sed -i -e 's/memcpy(r->bytes, from, total - first);/memcpy(r->bytes, from + first, total - first);/' ring.c
    ;;
  cpp-calc)
    sed -i -e 's/const long left = product();/long left = product();/' \
           -e "s/if (take('+')) return left + sum();/for (;;) if (take('+')) left += product();/" \
           -e "s/if (take('-')) return left - sum();/else if (take('-')) left -= product();/" \
           -e 's/return left;/else return left;/' calc.cc
    ;;
  py-kvstore)
    sed -i -e 's/if expected and old is not None and self.etag(old) != expected/if expected and (old is None or self.etag(old) != expected)/' kvstore.py
    ;;
esac
