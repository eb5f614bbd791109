#!/bin/sh
# TAP tests of rotate; run from the top of the tree.
rotate=$PWD/rotate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# is FOUND EXPECTED DESCRIPTION
is() {
  number=$((number + 1))
  if [ "$1" = "$2" ]; then
    echo "ok $number - $3"
  else
    echo "not ok $number - $3"
    echo "# found '$1', expected '$2'"
    failed=1
  fi
}

fresh() { rm -rf "$work/logs"; mkdir "$work/logs"; cd "$work/logs" || exit 9; }

echo "1..8"

fresh; echo one > app.log; sh "$rotate" app.log
is "$(cat app.log.1)" one "the log becomes number 1"
is "$(wc -c < app.log | tr -d ' ')" 0 "an empty log takes its place"

fresh; for day in mon tue wed; do echo $day > app.log; sh "$rotate" app.log; done
is "$(cat app.log.1 app.log.2 app.log.3 2>&1 | tr '\n' ' ')" "wed tue mon " "old ones move up by one"

fresh; for day in mon tue wed thu; do echo $day > app.log; sh "$rotate" app.log 2; done
is "$(ls | tr '\n' ' ')" "app.log app.log.1 app.log.2 " "no more than KEEP stay"

fresh; echo one > "my app.log"; sh "$rotate" "my app.log" 2>/dev/null
is "$(cat "my app.log.1" 2>/dev/null)" one "a name may have spaces"

fresh; : > app.log; sh "$rotate" app.log
is "$(ls)" app.log "an empty log stays where it is"

fresh; sh "$rotate" none.log 2>/dev/null
is $? 1 "a missing log is an error"

fresh; echo x > a; sh "$rotate" a 0 2>/dev/null
is $? 2 "KEEP must be above 0"

exit $failed
