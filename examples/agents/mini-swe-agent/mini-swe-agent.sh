#!/bin/sh
# MSWEA_CONFIGURED skips the dialogue of the first start.  MSWEA_COST_TRACKING lets it use a model whose price LiteLLM does not know.
exec mini --yolo --exit-immediately -m "openai/$PROCTOR_GATEWAY_MODEL" -t "$PROCTOR_BRIEFING" -o "$HOME/trajectory.json" < /dev/null
