#include "worker/gateway/key_question.h"

#include <string_view>

#include "common/contract/models_file.h"
#include "worker/gateway/provider_answer.h"
#include "worker/gateway/provider_request.h"

namespace proctor {

bool is_key_refusal(int status) {
  constexpr int kDenied = 401, kForbidden = 403;
  return status == kDenied || status == kForbidden;
}

int ask_about_key(ProviderPool& pool, const ModelAccess& access, ModelApi api, int stop,
                  SteadyClock::time_point until) {
  constexpr std::string_view kNothing = "{}";
  const Result<Secret> key = model_key(access);
  const Result<ProviderPlace> place = provider_place(access.url);
  if (!key.ok() || !place.ok()) return 0;
  GatewayHead ours;  // no field of the agent's: one could be what is refused
  ours.fields = {{"anthropic-version", "2023-06-01"}};
  const std::string head =
      provider_head({*place, *key, access.auth, api, ours, std::string(), kNothing.size()});
  auto connection = pool.connect(access, stop, until);
  if (!connection.ok() || !(*connection)->write(head, stop, until) ||
      !(*connection)->write(kNothing, stop, until))
    return 0;
  ProviderAnswer answer(**connection, stop);
  return answer.read_head(until) ? answer.head().status : 0;
}

}  // namespace proctor
