#include "common/contract/models_member.h"

#include <array>

#include "common/base/text.h"

namespace proctor {
namespace {

struct ApiWord {
  std::string_view word;
  ModelApi api;
};
constexpr std::array<ApiWord, 6> kApis{{{"chat", ModelApi::kChat},
                                        {"completions", ModelApi::kCompletions},
                                        {"responses", ModelApi::kResponses},
                                        {"embeddings", ModelApi::kEmbeddings},
                                        {"messages", ModelApi::kMessages},
                                        {"count_tokens", ModelApi::kCountTokens}}};

// One member, with what a mistake in it is called.
class Member {
 public:
  Member(const std::string& model, const std::string& key, const Json& value)
      : model_("models." + printable(model, 100)), key_(printable(key, 100)), value_(value) {}

  Error wrong(const std::string& expected) const {
    return {Errc::kInvalid, model_ + "." + key_ + ": expected " + expected};
  }
  Error unknown() const { return {Errc::kInvalid, model_ + ": unknown member \"" + key_ + "\""}; }
  Status text(std::string& out) const { return text_of(value_, out); }
  Status texts(std::vector<std::string>& out) const {
    if (!value_.is_array() || value_.empty()) return wrong("a list of its words");
    for (const Json& item : value_) PROCTOR_CHECK_OK(text_of(item, out.emplace_back()));
    return ok_status();
  }
  Status flag(bool& out) const {
    if (!value_.is_boolean()) return wrong("true or false");
    out = value_.get<bool>();
    return ok_status();
  }
  Status count(std::uint64_t& out, std::uint64_t least, std::uint64_t most) const {
    if (!value_.is_number_unsigned() || value_.get<std::uint64_t>() < least ||
        most < value_.get<std::uint64_t>())
      return wrong(std::to_string(least) + " to " + std::to_string(most));
    out = value_.get<std::uint64_t>();
    return ok_status();
  }
  Status time(std::chrono::milliseconds& out, std::uint64_t unit, std::uint64_t most) const {
    std::uint64_t n = 0;
    PROCTOR_CHECK_OK(count(n, unit == 1 ? 0 : 1, most));
    out = std::chrono::milliseconds(n * unit);
    return ok_status();
  }
  Status apis(std::set<ModelApi>& out) const {
    std::vector<std::string> words;
    PROCTOR_CHECK_OK(texts(words));
    out.clear();
    for (const std::string& word : words) {
      bool known = false;
      for (const ApiWord& a : kApis)
        if (a.word == word) known = out.insert(a.api).second || known || out.contains(a.api);
      if (!known)
        return wrong("chat, completions, responses, embeddings, messages or count_tokens, not \"" +
                     printable(word, 40) + "\"");
    }
    return ok_status();
  }
  Status match(CassetteMatch& out) const {
    std::string word;
    PROCTOR_CHECK_OK(text(word));
    for (const auto match :
         {CassetteMatch::kExact, CassetteMatch::kCanonical, CassetteMatch::kSequence}) {
      if (word != to_string(match)) continue;
      out = match;
      return ok_status();
    }
    return wrong("exact, canonical or sequence");
  }
  Status auth(ModelAuth& out) const {
    std::string word;
    PROCTOR_CHECK_OK(text(word));
    if (word == "bearer") return set(out, ModelAuth::kBearer);
    if (word == "x-api-key") return set(out, ModelAuth::kXApiKey);
    if (word == "api-key") return set(out, ModelAuth::kApiKey);
    if (word == "none") return set(out, ModelAuth::kNone);
    return wrong("bearer, x-api-key, api-key or none");
  }

 private:
  static Status set(ModelAuth& out, ModelAuth auth) {
    out = auth;
    return ok_status();
  }
  Status text_of(const Json& value, std::string& out) const {
    constexpr std::size_t kMost = 4096;
    if (!value.is_string() || value.string().empty() || kMost < value.string().size())
      return wrong("a text of 1 to 4096 bytes");
    out = value.get<std::string>();
    return ok_status();
  }
  std::string model_, key_;
  const Json& value_;
};

constexpr std::uint64_t kTokensMost = 100'000'000, kHour = 3'600, kMs = 1, kSecond = 1'000;

Status read_gateway_member(const Member& m, const std::string& key, ModelAccess& out) {
  if (key == "api") return m.apis(out.api);
  if (key == "auth") return m.auth(out.auth);
  if (key == "ca_file") return m.text(out.ca_file);
  if (key == "max_input") return m.count(out.max_input, 1, kTokensMost);
  if (key == "max_output") return m.count(out.max_output, 1, kTokensMost);
  if (key == "output_default") return m.count(out.output_default, 1, kTokensMost);
  if (key == "output_floor") return m.count(out.output_floor, 1, kTokensMost);
  if (key == "hidden_input_tokens") return m.count(out.hidden_input, 0, kTokensMost);
  if (key == "image_tokens") return m.count(out.image_tokens.emplace(0), 1, kTokensMost);
  if (key == "errors_are_free") return m.flag(out.errors_are_free);
  if (key == "delta") return m.flag(out.delta);
  if (key == "stream_usage") return m.flag(out.stream_usage);
  if (key == "first_byte_s") return m.time(out.first_byte, kSecond, kHour);
  if (key == "idle_s") return m.time(out.idle, kSecond, kHour);
  if (key == "total_s") return m.time(out.total, kSecond, kHour);
  if (key == "cassette") return m.text(out.cassette);
  if (key == "cassette_match") return m.match(out.cassette_match);
  if (key == "cassette_charges") return m.flag(out.cassette_charges);
  if (key == "tiers") {
    std::vector<std::string> words;
    PROCTOR_CHECK_OK(m.texts(words));
    out.tiers = {words.begin(), words.end()};
    return ok_status();
  }
  return m.unknown();
}

}  // namespace

std::string_view to_string(ModelApi api) {
  for (const ApiWord& a : kApis)
    if (a.api == api) return a.word;
  return "";
}

std::string_view to_string(CassetteMatch match) {
  switch (match) {
    case CassetteMatch::kExact:
      return "exact";
    case CassetteMatch::kCanonical:
      return "canonical";
    case CassetteMatch::kSequence:
      return "sequence";
  }
  return "";
}

Status read_model_member(const std::string& model, const std::string& key, const Json& value,
                         ModelAccess& out) {
  const Member m(model, key, value);
  if (key == "url") return m.text(out.url);
  if (key == "send_as") return m.text(out.send_as);
  if (key == "key_variable") return m.text(out.key_variable);
  if (key == "key_file") return m.text(out.key_file);
  if (key == "output_limit") return m.text(out.output_limit);
  if (key == "backoff_ms") return m.time(out.backoff, kMs, kHour * kSecond);
  if (key == "program") return m.texts(out.program);
  return read_gateway_member(m, key, out);
}

}  // namespace proctor
