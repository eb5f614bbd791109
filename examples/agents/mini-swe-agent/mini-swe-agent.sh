#!/bin/sh
# MSWEA_CONFIGURED: no dialogue at its first start.  MSWEA_COST_TRACKING: else it stops at a model whose price it does not know.
exec mini --yolo --exit-immediately -m "openai/$PROCTOR_GATEWAY_MODEL" -t "$PROCTOR_BRIEFING" -o "$HOME/trajectory.json" < /dev/null
