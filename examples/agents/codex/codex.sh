#!/bin/sh
# Codex reads the address of its model from no variable.  Its own sandbox is off because it runs in one already; its search of
# the web is off because the provider would run it.
exec codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
  -c model_provider=proctor -c model="$PROCTOR_GATEWAY_MODEL" -c web_search=disabled \
  -c "model_providers.proctor={name=\"proctor\",base_url=\"$PROCTOR_GATEWAY/v1\",env_key=\"PROCTOR_GATEWAY_TOKEN\",wire_api=\"responses\"}" \
  "$PROCTOR_BRIEFING" < /dev/null
