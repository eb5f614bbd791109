#!/bin/sh
# --yolo and --exit-immediately ask nobody before a command and after the last.
exec mini --yolo --exit-immediately -m "openai/$PROCTOR_GATEWAY_MODEL" -t "$PROCTOR_BRIEFING" -o "$HOME/trajectory.json" < /dev/null
