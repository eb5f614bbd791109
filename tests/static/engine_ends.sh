#!/bin/sh
# tests/static/engine_ends.sh SCRIPTS: the engine of scripts/lib-docker.sh ends with its owner, whatever ends that one,
# and who finds the lock taken is told by whom.  The engine, curl, id and iptables are stand-ins, so that no real
# engine is needed or touched.
set -u

scripts=$1
dir=$(mktemp -d)
failed=0
. "$scripts/lib-docker.sh"
fail() { echo "engine_ends: $*" >&2; failed=1; }
mkdir "$dir/bin" "$dir/tmp" "$dir/cache"
cat >"$dir/bin/dockerd" <<'END'
#!/usr/bin/env python3
import os, signal, socket, sys
at = {sys.argv[i]: sys.argv[i + 1] for i in range(1, len(sys.argv) - 1)}
open(at["--pidfile"], "w").write(str(os.getpid()))  # whoever finds the socket reads it
listener = socket.socket(socket.AF_UNIX)
listener.bind(at["-H"].removeprefix("unix://"))
signal.pause()
END
# A socket below our folder answers; the host's own engine does not, whatever it is.
cat >"$dir/bin/curl" <<END
#!/bin/sh
case "\$*" in *"$dir"*) exit 0 ;; esac
exit 7
END
printf '#!/bin/sh\necho 0\n' >"$dir/bin/id"
printf '#!/bin/sh\nexit 1\n' >"$dir/bin/iptables"
chmod 755 "$dir/bin"/*
cat >"$dir/owner" <<END
PATH=$dir/bin:\$PATH TMPDIR=$dir/tmp XDG_CACHE_HOME=$dir/cache
export PATH TMPDIR XDG_CACHE_HOME
unset PROCTOR_DOCKER_SOCKET
. $scripts/lib-docker.sh
trap docker_stop_ours EXIT
docker_ensure || exit 3
cat \$docker_run/pid >$dir/engine.tmp && mv $dir/engine.tmp $dir/engine
[ "\$1" = stay ] || exit 0
while :; do sleep 0.2; done
END
lock=$dir/cache/proctor/docker/lock

# until_true COMMAND...: two minutes at most.
until_true() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || return 1
    sleep 0.1
  done
}
# A process that has ended and whose parent has not asked yet is gone too.
gone() { [ -z "$(docker_began "$engine")" ]; }
free() { flock -n "$lock" true; }
nothing_left() { [ -z "$(ls "$dir/tmp")" ]; }

for signal in KILL TERM GROUP; do
  rm -f "$dir/engine"
  setsid sh "$dir/owner" stay >"$dir/said" 2>&1 &
  owner=$!
  if ! until_true test -s "$dir/engine"; then
    fail "the engine did not come up: $(cat "$dir/said")"
    kill -KILL "$owner" 2>/dev/null
    break
  fi
  engine=$(cat "$dir/engine")
  # Another script meanwhile is told whose engine it is that holds the lock.
  if sh "$dir/owner" leave 2>"$dir/second"; then fail "two engines used one folder"; fi
  grep -q "script $owner, engine $engine, socket $dir/tmp/" "$dir/second" || fail "who holds the lock was not said: $(cat "$dir/second")"
  if [ "$signal" = GROUP ]; then kill -KILL "-$owner"; else kill "-$signal" "$owner"; fi
  wait "$owner" 2>/dev/null
  until_true gone
  until_true free || fail "the lock outlived an owner that $signal ended"
  if ! gone; then
    fail "the engine outlived an owner that $signal ended"
    kill -KILL "$engine"
  fi
  # Nobody is there any more who could remove a folder.
  if [ "$signal" = GROUP ]; then rm -rf "$dir/tmp"/*; fi
  until_true nothing_left || fail "$signal: left in its folder: $(ls "$dir/tmp")"
done

# An owner that ends by itself has stopped its engine when it is gone.
sh "$dir/owner" leave || fail "an engine could not be had after the others"
free || fail "an owner that ended left the lock"
nothing_left || fail "an owner that ended left $(ls "$dir/tmp")"
rm -rf "$dir"
exit "$failed"
