# Shell helpers for scripts that need a Docker Engine.  Source it; it runs nothing by itself.
#
#   docker_ensure      use the engine that answers, else start one of our own; sets and exports
#                      PROCTOR_DOCKER_SOCKET; returns 1 with a reason on stderr when there is none
#   docker_stop_ours   stop the engine that docker_ensure started; any other is left alone
#
# An engine of ours ends with the script that started it, also when that one is killed.
#
# Our engine has its own data, its own socket and its own containerd in a private folder, so that it
# neither sees nor disturbs one that is started later at the usual place.

# Does an engine answer at this socket?  One on a host under load takes its time; where none is, curl knows at once.
docker_answers_at() {
  [ -S "$1" ] && curl -fsS --max-time 20 --unix-socket "$1" http://docker/_ping >/dev/null 2>&1
}

docker_ensure() {
  for socket in "${PROCTOR_DOCKER_SOCKET:-}" /var/run/docker.sock; do
    if [ -n "$socket" ] && docker_answers_at "$socket"; then
      PROCTOR_DOCKER_SOCKET=$socket
      export PROCTOR_DOCKER_SOCKET
      return 0
    fi
  done
  if ! command -v dockerd >/dev/null || ! command -v curl >/dev/null; then
    echo "docker: dockerd or curl is not installed (on Debian: apt-get install docker.io curl)" >&2
    return 1
  fi
  if [ "$(id -u)" != 0 ]; then
    echo "docker: no engine answers, and only root can start one" >&2
    return 1
  fi
  # Images survive from one use to the next; sockets and pids do not, and their paths must be short.
  docker_data=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/proctor/docker
  mkdir -p "$docker_data" || return 1
  docker_run=$(mktemp -d "${TMPDIR:-/tmp}/proctor-docker.XXXXXX") || return 1
  docker_supervise "$docker_data" "$docker_run" "$$" </dev/null >"$docker_run/said" 2>&1 &
  docker_supervisor=$!
  waited=0
  while ! docker_answers_at "$docker_run/sock"; do
    waited=$((waited + 1))
    if [ "$waited" -gt 1800 ] || ! kill -0 "$docker_supervisor" 2>/dev/null; then
      docker_say_why
      docker_stop_ours
      return 1
    fi
    sleep 0.1
  done
  PROCTOR_DOCKER_SOCKET=$docker_run/sock
  export PROCTOR_DOCKER_SOCKET
}

docker_say_why() {
  if [ -e "$docker_run/locked" ]; then
    echo "docker: the engine of another script uses $docker_data: $(cat "$docker_data/user" 2>/dev/null || echo "nobody wrote down whose")" >&2
    echo "docker: wait until that script has ended, or use its engine: PROCTOR_DOCKER_SOCKET=SOCKET" >&2
  else
    echo "docker: our own engine did not come up; the end of its log $docker_run/log:" >&2
    tail -n 5 "$docker_run/log" "$docker_run/said" 2>/dev/null >&2
  fi
}

docker_stop_ours() {
  [ -n "${docker_run:-}" ] || return 0
  kill -TERM "$docker_supervisor" 2>/dev/null
  wait "$docker_supervisor" 2>/dev/null
  # What the supervisor has not removed is of an engine that ended by itself.
  rm -rf --one-file-system "$docker_run" 2>/dev/null
  docker_run=
  unset PROCTOR_DOCKER_SOCKET
}

# When did this process begin, in ticks?  Nothing: it has ended, though its parent may not have asked yet.
docker_began() {
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  # A name may hold blanks and brackets; what follows its last bracket is the state and 18 more words before the time.
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  [ "$1" = Z ] || echo "${20}"
}

# docker_supervise DATA RUN OWNER: our engine, which ends with its owner however that one ends.  SIGKILL runs no trap,
# and a stop in good order takes longer than a death signal: a process of its own looks after the owner.
docker_supervise() {
  data=$1 run=$2 owner=$3 over=no
  trap 'over=yes' TERM
  # A terminal's interrupt is for the owner, whose trap stops the engine when the last test has let go of it.
  trap '' INT HUP
  began=$(docker_began "$owner")
  # Without a bridge and iptables rules nothing of the host's network changes where they cannot be had.
  network=
  if ! iptables -t nat -L >/dev/null 2>&1; then network="--iptables=false --bridge=none"; fi
  # Two engines on one data folder would destroy it: flock holds the lock as long as ours lives.
  # Who kills the owner's whole group ends this process too: then the lock's holder goes at once, and the engine is told.
  # shellcheck disable=SC2016,SC2086
  setsid setpriv --pdeathsig KILL flock -n -o -E 75 "$data/lock" sh -c 'echo "script $1, engine $$, socket $2/sock" >"$3/user"; shift 3; exec "$@"' \
    sh "$owner" "$run" "$data" setpriv --pdeathsig TERM dockerd --data-root "$data/data" --exec-root "$run/exec" \
    --pidfile "$run/pid" -H "unix://$run/sock" $network >"$run/log" 2>&1 &
  locker=$!
  while [ "$over" = no ] && kill -0 "$locker" 2>/dev/null && [ -n "$began" ] && [ "$(docker_began "$owner")" = "$began" ]; do
    sleep 0.5
  done
  if [ "$over" = no ] && [ "$(docker_began "$owner")" = "$began" ]; then
    # The engine ended by itself: its owner still reads why, and removes the folder.
    wait "$locker"
    [ $? != 75 ] || : >"$run/locked"
    return 0
  fi
  engine=$(cat "$run/pid" 2>/dev/null)
  # An owner may end before its engine has written its pid; flock's only child is the engine then too.
  [ -n "$engine" ] || engine=$(cat "/proc/$locker/task/$locker/children" 2>/dev/null)
  # shellcheck disable=SC2086
  [ -z "$engine" ] || kill -TERM $engine 2>/dev/null
  waited=0
  while [ -n "$(docker_began "$locker")" ] && [ "$waited" -lt 600 ]; do
    waited=$((waited + 1))
    sleep 0.1
  done
  # shellcheck disable=SC2086
  [ -z "$engine" ] || kill -KILL $engine 2>/dev/null
  # Network namespaces of dead containers may still be mounted below exec-root.
  rm -rf --one-file-system "$run" 2>/dev/null
}
