# Shell helpers for scripts that need a Docker Engine.  Source it; it runs nothing by itself.
#
#   docker_ensure      use the engine that answers, else start one of our own; sets and exports
#                      PROCTOR_DOCKER_SOCKET; returns 1 with a reason on stderr when there is none
#   docker_stop_ours   stop the engine that docker_ensure started; any other is left alone
#
# Our engine has its own data, its own socket and its own containerd in a private folder, so that it
# neither sees nor disturbs one that is started later at the usual place.

# Does an engine answer at this socket, within two seconds?
docker_answers_at() {
  [ -S "$1" ] && curl -fsS --max-time 2 --unix-socket "$1" http://docker/_ping >/dev/null 2>&1
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
  # Two engines on one data folder would destroy it: flock holds the lock as long as ours lives.
  # Without a bridge and iptables rules nothing of the host's network changes where they cannot be had.
  docker_network=
  if ! iptables -t nat -L >/dev/null 2>&1; then docker_network="--iptables=false --bridge=none"; fi
  # shellcheck disable=SC2086
  flock -n -o "$docker_data/lock" dockerd --data-root "$docker_data/data" --exec-root "$docker_run/exec" \
    --pidfile "$docker_run/pid" -H "unix://$docker_run/sock" $docker_network \
    >"$docker_run/log" 2>&1 </dev/null &
  docker_wrapper=$!
  waited=0
  while ! docker_answers_at "$docker_run/sock"; do
    waited=$((waited + 1))
    if [ "$waited" -gt 300 ] || ! kill -0 "$docker_wrapper" 2>/dev/null; then
      echo "docker: our own engine did not come up; the end of its log:" >&2
      tail -n 5 "$docker_run/log" >&2
      docker_stop_ours
      return 1
    fi
    sleep 0.1
  done
  PROCTOR_DOCKER_SOCKET=$docker_run/sock
  export PROCTOR_DOCKER_SOCKET
}

docker_stop_ours() {
  [ -n "${docker_run:-}" ] || return 0
  if [ -s "$docker_run/pid" ]; then
    docker_pid=$(cat "$docker_run/pid")
    kill -TERM "$docker_pid" 2>/dev/null
    waited=0
    while kill -0 "$docker_pid" 2>/dev/null && [ "$waited" -lt 200 ]; do
      waited=$((waited + 1))
      sleep 0.1
    done
    kill -KILL "$docker_pid" 2>/dev/null
  fi
  wait "${docker_wrapper:-}" 2>/dev/null
  # Network namespaces of dead containers may still be mounted below exec-root.
  rm -rf --one-file-system "$docker_run" 2>/dev/null
  docker_run=
  unset PROCTOR_DOCKER_SOCKET
}
