#include "worker/gateway/ceiling.h"

#include <algorithm>
#include <utility>

namespace proctor {
namespace {

constexpr std::uint64_t kSaid = 1'024, kOldDefault = 16;

bool has_output(ModelApi api) {
  return api != ModelApi::kEmbeddings && api != ModelApi::kCountTokens;
}

}  // namespace

TokenCeiling ceiling_of(ModelApi api, const BodyPeek& peek, std::uint64_t body_bytes,
                        const GatewayModel& model, const ModelAccess& access) {
  TokenCeiling out;
  out.input = body_bytes - std::min(body_bytes, peek.image_bytes) + peek.tool_bytes +
              kTokensPerItem * peek.items + peek.images * access.image_tokens.value_or(0) +
              access.hidden_input;
  out.input = std::min(out.input, access.max_input);
  if (!has_output(api)) return out;
  const std::uint64_t otherwise =
      api == ModelApi::kCompletions ? kOldDefault : access.output_default;
  out.asked = std::min({peek.limit.value_or(otherwise), access.max_output,
                        model.output_max.value_or(access.max_output)});
  const std::uint64_t thought = 0 < peek.thinking ? peek.thinking + kSaid : 0;
  out.least = std::min(out.asked, std::max(access.output_floor, thought));
  return out;
}

std::optional<Splice> limit_edit(ModelApi api, const BodyPeek& peek, const ModelAccess& access,
                                 std::uint64_t limit) {
  if (!has_output(api) || peek.limit == limit) return std::nullopt;
  if (peek.limit)
    return Splice{peek.limit_at, std::to_string(limit), peek.limit_key, "what is granted"};
  const std::string_view key = api == ModelApi::kChat        ? std::string_view(access.output_limit)
                               : api == ModelApi::kResponses ? "max_output_tokens"
                                                             : "max_tokens";
  Splice out = further_member(peek.root, peek.has_members, key, std::to_string(limit));
  out.why = "what is granted";
  return out;
}

MeterFit fit_of(std::string id, const GatewayModel& model, const BodyPeek& peek,
                const TokenCeiling& ceiling) {
  MeterFit fit;
  fit.request.id = std::move(id);
  fit.request.action.type = kLlmRequest;
  fit.request.action.provider = model.provider;
  fit.request.action.model = model.name;
  fit.request.action.tier = peek.tier;
  fit.request.witness = Witness::kMeasured;
  fit.request.cache = peek.caches_for_hours ? CacheUse::kHours
                      : peek.caches         ? CacheUse::kMinutes
                                            : CacheUse::kNone;
  fit.samples = peek.samples;
  const bool output = 0 < ceiling.asked;
  fit.beside = output ? peek.beside : 0;
  fit.least = ceiling.least;
  fit.request.most.input_tokens = ceiling.input;
  fit.request.most.output_tokens = output ? (ceiling.asked + fit.beside) * fit.samples : 0;
  return fit;
}

}  // namespace proctor
