#include "worker/gateway/body_peek.h"

#include <algorithm>
#include <array>
#include <utility>

#include "worker/gateway/body_parts.h"
#include "worker/gateway/body_shapes.h"

namespace proctor {
namespace {

using Members = std::vector<JsonMember>;

class Peeker {
 public:
  Peeker(ModelApi api, const JsonText& text) : api_(api), text_(text), parts_(api, text, out_) {}

  Result<BodyPeek> peek(bool caches, bool for_hours) {
    out_.root = text_.root();
    out_.caches = caches;
    out_.caches_for_hours = for_hours;
    PROCTOR_TRY(const Members members, text_.members(out_.root));
    out_.has_members = !members.empty();
    for (const JsonMember& m : members) {
      PROCTOR_CHECK_OK(member(m));
      if (is_setting(m)) out_.settings.push_back({m.begin, end_of(m) - m.begin});
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i].key == "tools") out_.tools_member = whole_member(members, i);
    if (out_.model.empty()) return wrong_member("model", "the name of one");
    out_.samples *= prompts_;
    out_.tool_bytes += out_.references * out_.largest_tool;
    std::ranges::sort(out_.cuts);
    return std::move(out_);
  }

 private:
  static std::size_t end_of(const JsonMember& m) { return m.value.at + m.value.size; }
  static JsonSpan whole_member(const Members& members, std::size_t i) {
    if (i + 1 < members.size()) return {members[i].begin, members[i + 1].begin - members[i].begin};
    const std::size_t from = i == 0 ? members[i].begin : end_of(members[i - 1]);
    return {from, end_of(members[i]) - from};
  }

  // Neither an item nor what no answer's cost depends on.
  bool is_setting(const JsonMember& m) const {
    constexpr std::array<std::string_view, 11> kNot{
        "messages", "input",    "tools", "functions",       "stream",       "stream_options",
        "store",    "metadata", "user",  "client_metadata", "cache_control"};
    const bool items = m.key == "system" && text_.kind(m.value) == '[';
    return !items && !is_limit(m.key) && std::ranges::find(kNot, m.key) == kNot.end();
  }

  Status member(const JsonMember& m) {
    const std::string& key = m.key;
    // Programs that take members of any case would read another request than we do.
    const std::string usual = usual_spelling(key);
    if (usual != key && is_read(usual)) return wrong_member(key, "the spelling " + usual);
    if (key == "model") return read_model(m);
    if (key == "stream") return flag(m, out_.stream);
    if (key == "stream_options") return stream_options(m);
    if (key == "n" || key == "best_of") return samples(m);
    if (is_limit(key)) return limit(m);
    if (key == "service_tier") return tier(m);
    if (key == "speed" && api_ == ModelApi::kMessages) return tier(m);
    if (key == "messages" || key == "input" || key == "system") return parts_.read(m);
    if (key == "tools" || key == "functions") return tools(m);
    if (key == "prediction") out_.beside = m.value.size;
    if (key == "thinking") return thinking(m);
    return reach(m, usual);
  }

  static bool is_read(std::string_view key) {
    constexpr std::array<std::string_view, 21> kRead{"model",
                                                     "stream",
                                                     "stream_options",
                                                     "n",
                                                     "best_of",
                                                     "max_tokens",
                                                     "max_completion_tokens",
                                                     "max_output_tokens",
                                                     "service_tier",
                                                     "speed",
                                                     "messages",
                                                     "input",
                                                     "system",
                                                     "tools",
                                                     "functions",
                                                     "prediction",
                                                     "thinking",
                                                     "prompt",
                                                     "context_management",
                                                     "instructions",
                                                     "modalities"};
    return std::ranges::find(kRead, key) != kRead.end();
  }

  bool is_limit(std::string_view key) const {
    switch (api_) {
      case ModelApi::kChat:
        return key == "max_completion_tokens" || key == "max_tokens";
      case ModelApi::kCompletions:
      case ModelApi::kMessages:
        return key == "max_tokens";
      case ModelApi::kResponses:
        return key == "max_output_tokens";
      case ModelApi::kEmbeddings:
      case ModelApi::kCountTokens:
        return false;
    }
    return false;
  }

  bool is_null(const JsonMember& m) const { return text_.kind(m.value) == 'n'; }

  Status read_model(const JsonMember& m) {
    const auto name = text_.text(m.value);
    if (!name || name->empty()) return wrong_member("model", "the name of one");
    out_.model = *name;
    out_.model_at = m.value;
    return ok_status();
  }
  Status flag(const JsonMember& m, bool& out) {
    if (is_null(m)) return ok_status();
    const auto said = text_.flag(m.value);
    if (!said) return wrong_member(m.key, "true or false");
    out = *said;
    return ok_status();
  }
  Result<std::uint64_t> count(const JsonMember& m, std::uint64_t least) {
    const auto n = text_.count(m.value);
    if (!n || *n < least)
      return wrong_member(m.key, "a whole number of at least " + std::to_string(least) +
                                     ", without sign, point or exponent");
    return *n;
  }
  Status limit(const JsonMember& m) {
    if (is_null(m)) return wrong_member(m.key, "a number, or no such member");
    PROCTOR_TRY(const std::uint64_t n, count(m, 1));
    if (out_.limit)
      return wrong_member(m.key, "one limit of the output, not " + out_.limit_key + " too");
    out_.limit = n;
    out_.limit_key = m.key;
    out_.limit_at = m.value;
    return ok_status();
  }
  Status samples(const JsonMember& m) {
    constexpr std::uint64_t kMost = 16;
    if (is_null(m)) return ok_status();
    PROCTOR_TRY(const std::uint64_t n, count(m, 1));
    if (kMost < n) return wrong_member(m.key, "at most 16");
    out_.samples = std::max(out_.samples, n);
    return ok_status();
  }
  Status tier(const JsonMember& m) {
    if (is_null(m)) return ok_status();
    const auto word = text_.text(m.value);
    if (!word) return wrong_member(m.key, "a word");
    if (*word != "auto" && *word != "default" && *word != "standard" && *word != "standard_only")
      out_.tier = *word;
    return ok_status();
  }
  Status stream_options(const JsonMember& m) {
    if (is_null(m)) return wrong_member(m.key, "a mapping, or no such member");
    if (text_.kind(m.value) != '{') return wrong_member(m.key, "a mapping");
    out_.stream_options_at = m.value;
    PROCTOR_TRY(const Members members, text_.members(m.value));
    out_.stream_options_empty = members.empty();
    const JsonMember* usage = find_member(members, "include_usage");
    if (usage == nullptr) return ok_status();
    const auto said = text_.flag(usage->value);
    if (!said) return wrong_member("stream_options.include_usage", "true or false");
    out_.include_usage = *said;
    out_.include_usage_at = usage->value;
    return ok_status();
  }
  Status thinking(const JsonMember& m) {
    if (text_.kind(m.value) != '{') return ok_status();
    PROCTOR_TRY(const Members members, text_.members(m.value));
    const JsonMember* budget = find_member(members, "budget_tokens");
    if (budget == nullptr) return ok_status();
    PROCTOR_TRY(out_.thinking, count(*budget, 0));
    return ok_status();
  }

  Status tools(const JsonMember& m) {
    if (is_null(m)) return ok_status();
    if (text_.kind(m.value) != '[') return wrong_member(m.key, "a list");
    PROCTOR_TRY(const auto elements, text_.elements(m.value));
    out_.items += elements.size();
    out_.tool_bytes += m.value.size;
    parts_.cut(m.value, elements);
    if (m.key == "tools") out_.tools_at = m.value;
    for (const JsonSpan& e : elements) {
      out_.largest_tool = std::max<std::uint64_t>(out_.largest_tool, e.size);
      out_.item_at.push_back({e, {.tool_bytes = e.size}});
      PROCTOR_TRY(PeekedTool tool, parts_.read_tool(e));
      if (m.key == "tools") out_.tools.push_back(std::move(tool));
    }
    return ok_status();
  }

  // Each prompt of a list is answered, and billed, up to the limit of its own.  A flat list of
  // token ids is one prompt; a list of texts or of such lists is as many as it has.
  Status prompts(const JsonMember& m) {
    constexpr std::uint64_t kMost = 2'048;
    ++out_.items;
    if (is_null(m) || text_.kind(m.value) == '"') return ok_status();
    if (text_.kind(m.value) != '[')
      return wrong_member(m.key, "a text, a list of them, or token ids");
    PROCTOR_TRY(const auto elements, text_.elements(m.value));
    parts_.cut(m.value, elements);
    std::uint64_t ids = 0;
    for (const JsonSpan& e : elements) {
      const char kind = text_.kind(e);
      if (text_.count(e)) {
        ++ids;
      } else if (kind == '[') {
        PROCTOR_TRY(const auto tokens, text_.elements(e));
        for (const JsonSpan& token : tokens)
          if (!text_.count(token)) return wrong_member(m.key, "token ids in the lists of its list");
      } else if (kind != '"') {
        return wrong_member(m.key, "a text, a list of them, or token ids");
      }
    }
    if (0 < ids && ids < elements.size())
      return wrong_member(m.key, "token ids or prompts, not both");
    if (0 < ids || elements.empty()) return ok_status();
    if (kMost < elements.size()) return wrong_member(m.key, "at most 2048 prompts");
    out_.items += elements.size();
    prompts_ = elements.size();
    return ok_status();
  }

  Status reach(const JsonMember& m, std::string_view usual) {
    // Completions have a prompt that is what is asked.
    if (m.key == "prompt" && api_ == ModelApi::kCompletions) return prompts(m);
    if (is_null(m)) return ok_status();
    const std::string_view bytes = text_.bytes(m.value);
    const NotPassed* barred = barred_member(usual);
    if (barred != nullptr && bytes != "false" && bytes != "[]" && bytes != "\"\"")
      parts_.refuse(m.key, std::string(barred->what), std::string(barred->instead));
    if (m.key == "context_management" && bytes.find("_tool_") != std::string_view::npos)
      out_.hides = true;
    if (m.key == "context_management" && bytes.find("compact") != std::string_view::npos)
      parts_.refuse(m.key, "a compaction, which is a further paid call,",
                    "shorten the conversation");
    if (m.key == "instructions" && api_ == ModelApi::kResponses && text_.kind(m.value) != '"')
      parts_.refuse(m.key, "a list of items", "send instructions as a text");
    if (m.key == "modalities") return modalities(m);
    return ok_status();
  }

  Status modalities(const JsonMember& m) {
    if (text_.kind(m.value) != '[') return wrong_member(m.key, "a list");
    PROCTOR_TRY(const auto elements, text_.elements(m.value));
    for (const JsonSpan& e : elements)
      if (text_.text(e) != "text")
        parts_.refuse(m.key, "an answer that is no text", "ask for text");
    return ok_status();
  }

  ModelApi api_;
  const JsonText& text_;
  std::uint64_t prompts_ = 1;
  BodyPeek out_;
  BodyParts parts_;
};

}  // namespace

std::vector<JsonSpan> pieces_of(std::size_t body, const std::vector<BodyCut>& cuts) {
  constexpr std::size_t kEnough = 1'024;
  std::vector<JsonSpan> out;
  std::size_t from = 0;
  for (const BodyCut& cut : cuts) {
    if (cut.at <= from || body <= cut.at) continue;
    if (!cut.always && cut.at - from < kEnough) continue;
    out.push_back({from, cut.at - from});
    from = cut.at;
  }
  if (from < body) out.push_back({from, body - from});
  return out;
}

Result<BodyPeek> peek_body(ModelApi api, std::string_view body) {
  bool caches = false, for_hours = false;
  const auto on_key = [&](std::string_view key, std::size_t at) {
    if (key == "cache_control" || key == "prompt_cache_options") caches = true;
    // "5m" is minutes; whatever else it is, it may be hours.
    if ((key == "ttl" || key == "prompt_cache_retention") && !body.substr(at).starts_with("\"5m\""))
      for_hours = true;
  };
  PROCTOR_TRY(const JsonText text, JsonText::read(body, on_key));
  if (text.kind(text.root()) != '{') return Error{Errc::kInvalid, "expected a JSON object"};
  return Peeker(api, text).peek(caches, for_hours);
}

}  // namespace proctor
