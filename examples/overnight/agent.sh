#!/bin/sh
# The methods "steady" and "moody".  What they change depends on task, method and replicate alone; so
# does how long they think, so that there is something to kill.
set -eu
tenths=$((5 + PROCTOR_REPLICATE * 7 % 21))
sleep "$((tenths / 10)).$((tenths % 10))"

if [ "$PROCTOR_METHOD" = moody ] && [ $((PROCTOR_REPLICATE % 3)) = 0 ]; then
  echo "not today" > NOTES
  exit 0
fi
case $PROCTOR_TASK in
  py-intervals)
    sed -i -e 's/if merged and begin < merged/if merged and begin <= merged/' \
           -e 's/(merged\[-1\]\[0\], end)/(merged[-1][0], max(merged[-1][1], end))/' intervals.py
    ;;
  sh-rotate)
    sed -i -e 's/^n=1$/n=$((keep - 1))/' -e 's/\[ "$n" -lt "$keep" \]/[ "$n" -gt 0 ]/' \
           -e 's/n=$((n + 1))/n=$((n - 1))/' -e 's/^mv $file/mv "$file"/' rotate
    ;;
  perl-ini)
    sed -i -e 's|$value =~ s/\\s\*\[;#\].\*$//;|$value =~ s/^("[^"]*"\|[^;#]*?)\\s*([;#].*)?$/$1/;|' lib/Ini.pm
    ;;
esac
