#!/bin/sh
# A stand-in for an agent that is installed in an image: the image needs a shell, and nothing of this host.
set -eu
: "${MINI_KEY:?mini-agent: MINI_KEY is not set}"
mkdir -p "$HOME/.mini-agent"
printf '%s\n' "$PROCTOR_BRIEFING" > "$HOME/.mini-agent/traj.txt"
echo "echo \"Hello, \$1\"" > greet.sh
