#!/bin/sh
# Codex reads no variable for the address of its model, so it is told here.  Its own sandbox is off because it is in one,
# and its search of the web because that runs at the provider.
exec codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
  -c model_provider=proctor -c model="$PROCTOR_GATEWAY_MODEL" -c web_search=disabled \
  -c "model_providers.proctor={name=\"proctor\",base_url=\"$PROCTOR_GATEWAY/v1\",env_key=\"PROCTOR_GATEWAY_TOKEN\",wire_api=\"responses\"}" \
  "$PROCTOR_BRIEFING" < /dev/null
