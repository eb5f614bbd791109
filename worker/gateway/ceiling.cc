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

namespace {
constexpr std::uint64_t kPerCall = 256;
constexpr std::size_t kItemsMost = 4'096;

bool has_turns(ModelApi api) {
  return api == ModelApi::kChat || api == ModelApi::kResponses || api == ModelApi::kMessages;
}

// Without its "cache_control" members: `at` is where the value of one begins.  They are small
// objects; what is cut of anything else counts as bytes that the digest does not cover.
void cut_mark(std::string& item, std::size_t at) {
  constexpr std::string_view kKey = "\"cache_control\"", kBlanks = " \t\r\n";
  constexpr std::size_t kMost = 64;
  const std::size_t key = item.rfind(kKey, at);
  const std::size_t end = item.find('}', at);
  if (key == std::string::npos || end == std::string::npos || kMost < end - key) return;
  if (item.find_first_not_of(" \t\r\n:", key + kKey.size()) != at || item[at] != '{') return;
  std::size_t from = key, to = end + 1;
  const std::size_t before = item.find_last_not_of(kBlanks, from - 1);
  const std::size_t behind = item.find_first_not_of(kBlanks, to);
  if (item[before] == ',') {
    from = before;
  } else if (behind != std::string::npos && item[behind] == ',') {
    to = behind + 1;
  }
  item.erase(from, to - from);
}

// A list of one text is the text: Claude Code writes a message so while it has a mark.
void unwrap_text(std::string& item) {
  const auto text = JsonText::read(item);
  if (!text.ok() || text->kind(text->root()) != '{') return;
  const auto members = text->members(text->root());
  const JsonMember* content = members.ok() ? find_member(*members, "content") : nullptr;
  if (content == nullptr || text->kind(content->value) != '[') return;
  const auto parts = text->elements(content->value);
  if (!parts.ok() || parts->size() != 1 || text->kind(parts->front()) != '{') return;
  const auto part = text->members(parts->front());
  if (!part.ok() || part->size() != 2) return;
  const JsonMember* type = find_member(*part, "type");
  const JsonMember* said = find_member(*part, "text");
  if (type == nullptr || said == nullptr || text->bytes(type->value) != "\"text\"") return;
  const std::string alone(text->bytes(said->value));
  item.replace(content->value.at, content->value.size, alone);
}

ItemMark mark_of(std::string_view bytes, const PeekedItem& item, const BodyPeek& peek,
                 const ModelAccess& access) {
  std::string plain(bytes);
  std::vector<std::size_t> marks;
  if (plain.find("cache_control") != std::string::npos) {
    const auto on_key = [&](std::string_view key, std::size_t at) {
      if (key == "cache_control") marks.push_back(at);
    };
    if (!JsonText::read(bytes, on_key).ok()) marks.clear();
  }
  for (; !marks.empty(); marks.pop_back()) cut_mark(plain, marks.back());
  if (plain.find("\"text\"") != std::string::npos) unwrap_text(plain);
  const BodyCounts& in = item.counts;
  const std::uint64_t unmarked = bytes.size() - std::min(bytes.size(), plain.size());
  plain += 0 < in.tool_bytes ? "tools" : "words";  // which cost differently
  return {sha256(plain),
          bytes.size() - std::min<std::uint64_t>(bytes.size(), in.image_bytes) +
              kTokensPerItem * (1 + in.items) + in.tool_bytes + in.references * peek.largest_tool +
              in.images * access.image_tokens.value_or(0),
          unmarked, 0 < in.thoughts};
}
}  // namespace

std::optional<CallShape> shape_of(ModelApi api, std::string_view body, const BodyPeek& peek,
                                  const ModelAccess& access) {
  if (!has_turns(api) || kItemsMost < peek.item_at.size() || peek.hides) return std::nullopt;
  CallShape out{api, {}, {}};
  Sha256 settings;
  for (const JsonSpan& member : peek.settings) {
    settings.update(body.substr(member.at, member.size));
    settings.update("\n");
  }
  // A provider has words of its own for a request with tools.
  settings.update(peek.tool_bytes == 0 ? "plain" : "tools");
  // A reference to a tool costs what that does.
  if (0 < peek.references && peek.tools_at)
    settings.update(body.substr(peek.tools_at->at, peek.tools_at->size));
  out.settings = settings.finish();
  for (const PeekedItem& item : peek.item_at)
    out.items.push_back(mark_of(body.substr(item.at.at, item.at.size), item, peek, access));
  std::ranges::sort(out.items);
  return out;
}

std::optional<std::uint64_t> DeltaRule::bound(const CallShape& shape) const {
  std::optional<std::uint64_t> least;
  for (const Seen& seen : seen_) {
    if (seen.shape.api != shape.api || seen.shape.settings != shape.settings) continue;
    std::uint64_t tokens = seen.tokens + kPerCall;
    auto had = seen.shape.items.begin();
    for (const ItemMark& item : shape.items) {
      while (had != seen.shape.items.end() && had->what < item.what) ++had;
      const bool again = had != seen.shape.items.end() && had->what == item.what;
      if (again) ++had;  // each of them once
      tokens += again && !item.thinks ? item.unmarked : item.tokens;
    }
    least = std::min(least.value_or(tokens), tokens);
  }
  return least;
}

void DeltaRule::settled(CallShape shape, const Amount& actual) {
  seen_.push_back({std::move(shape), actual.input_tokens + actual.output_tokens});
  if (kCalls < seen_.size()) seen_.pop_front();
}

void DeltaTrust::seen(std::uint64_t bound, std::uint64_t actual) {
  if (actual <= bound) {
    ++confirmed_;
    return;
  }
  confirmed_ = 0;
  need_ = std::min(need_ * kAgain, kMost);
}
}  // namespace proctor
