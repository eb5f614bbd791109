#!/bin/sh
# One tool call through the meter, with socat (or nc -U).  Every request of one line has an answer
# of one line; a denied call is not made.
set -eu
ask() {
  if command -v socat >/dev/null; then
    printf '%s\n' "$1" | socat -t 5 - "UNIX-CONNECT:$PROCTOR_METER"
  else
    printf '%s\n' "$1" | nc -N -U "$PROCTOR_METER"
  fi
}
id="tests-$$"
granted=$(ask "{\"op\":\"reserve\",\"id\":\"$id\",\"action\":\"tool_call\",\"ms\":60000}")
case $granted in
  *'"answer":"granted"'*) ;;
  *) echo "$granted" >&2; exit 1 ;;
esac
start=$(date +%s%3N)
"$@" || true
ask "{\"op\":\"charge\",\"id\":\"$id\",\"ms\":$(($(date +%s%3N) - start))}"
