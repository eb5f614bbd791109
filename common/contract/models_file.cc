#include "common/contract/models_file.h"

#include <sys/stat.h>
#include <array>
#include <cstdlib>

#include "common/base/git_program.h"
#include "common/base/json.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/document.h"

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

// One member of a model in the models file.  Pure; any thread.
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

namespace {
constexpr std::size_t kFileBytes = std::size_t{1} << 20;

Error wrong(const std::string& model, const std::string& what) {
  return {Errc::kInvalid, "models." + printable(model, 100) + what};
}

// Does the URL lead to this machine?
bool is_local(std::string_view url) {
  const std::size_t from = url.find("://");
  std::string_view host = url.substr(from + 3);
  host = host.substr(0, host.find('/'));
  if (host.find('@') != std::string_view::npos) return false;
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  return host == "127.0.0.1" || host == "localhost";
}

Status check_url(const std::string& model, const ModelAccess& access) {
  const bool plain = access.url.starts_with("http://");
  if (!plain && !access.url.starts_with("https://"))
    return wrong(model, ".url: expected http:// or https://, found \"" +
                            printable(redact_urls(access.url)) + "\"");
  if (access.url.find('@') != std::string::npos)
    return wrong(model, ".url: a name or password in it: give key_variable or key_file");
  const bool has_key = !access.key_variable.empty() || !access.key_file.empty();
  if (plain && has_key && !is_local(access.url))
    return wrong(model, ".url: a key goes over https:// only, but to this machine");
  return ok_status();
}

// Scalars that stand plain in YAML are what they would be in JSON.
Json json_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kScalar: {
      if (node.quoted) return node.text;
      if (node.text == "true" || node.text == "false") return node.text == "true";
      if (const auto n = whole_number<std::uint64_t>(node.text)) return *n;
      return node.text;
    }
    case Node::Kind::kSequence: {
      Json out = Json::array();
      for (const Node& item : node.items) out.push_back(json_of(item));
      return out;
    }
    case Node::Kind::kMapping:
      break;
  }
  Json out = Json::object();
  for (const Entry& e : node.entries) out[e.key] = json_of(e.value);
  return out;
}

Result<Json> read_text(std::string_view text, std::string_view file) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != std::string_view::npos && text[begin] == '{';
  if (json || format_of(file) == Format::kJson) return parse_json(text, {.bytes_max = kFileBytes});
  Diagnostics problems;
  const auto document = read_document(text, Format::kYaml, std::string(file), problems);
  if (!document || !problems.empty()) return Error{Errc::kInvalid, problems.text()};
  return json_of(document->root);
}
}  // namespace

Result<ModelsFile> parse_models(std::string_view text, std::string_view file) {
  PROCTOR_TRY(const Json document, read_text(text, file));
  if (!document.is_object() || document.size() != 1 || !document.contains("models") ||
      !document["models"].is_object())
    return Error{Errc::kInvalid, "expected {\"models\": {...}}"};
  ModelsFile out;
  for (const auto& [name, members] : document["models"].items()) {
    if (!members.is_object()) return wrong(name, ": expected a mapping");
    ModelAccess access;
    for (const auto& [key, value] : members.items())
      PROCTOR_CHECK_OK(read_model_member(name, key, value, access));
    const int ways = (access.url.empty() ? 0 : 1) + (access.program.empty() ? 0 : 1) +
                     (access.cassette.empty() ? 0 : 1);
    if (ways != 1) return wrong(name, ": expected one of url, program and cassette");
    if (!access.cassette.empty() && (!access.key_variable.empty() || !access.key_file.empty()))
      return wrong(name, ": a recording needs no key");
    if (!access.key_variable.empty() && !access.key_file.empty())
      return wrong(name, ": either key_variable or key_file");
    if (!access.url.empty()) PROCTOR_CHECK_OK(check_url(name, access));
    if (access.url.empty() && (!access.key_variable.empty() || !access.key_file.empty()))
      return wrong(name, ": a program finds its key itself");
    if (access.send_as.empty()) access.send_as = name;
    out.emplace(name, std::move(access));
  }
  return out;
}

Result<ModelsFile> load_models(const fs::path& file) {
  PROCTOR_TRY(const std::string text, read_file(file, kFileBytes));
  Result<ModelsFile> out = parse_models(text, file.filename().string());
  if (!out.ok()) return in_context(file.string(), out.error());
  return out;
}

namespace {
Error none(std::string why) {
  return {Errc::kUnavailable, std::move(why)};
}
}  // namespace

Result<Secret> model_key(const ModelAccess& access) {
  constexpr std::size_t kKeyBytes = std::size_t{64} << 10;
  std::string key;
  if (!access.key_variable.empty()) {
    const char* value = std::getenv(access.key_variable.c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || *value == '\0')
      return none("the variable " + access.key_variable + " has no key");
    key = value;
  } else if (!access.key_file.empty()) {
    struct stat looks {};
    if (::stat(access.key_file.c_str(), &looks) == 0 && (looks.st_mode & 077U) != 0)
      return none("the key file may be read by others than its owner: chmod 600 " +
                  access.key_file);
    Result<std::string> bytes = read_file(access.key_file, kKeyBytes);
    if (!bytes.ok()) return none("key file: " + bytes.error().detail);
    key = std::move(bytes).value();
    while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
    if (key.empty()) return none("the key file is empty: " + access.key_file);
  }
  for (const char c : key)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      return none("the key has control characters");
  return Secret(std::move(key));
}
}  // namespace proctor
