#include "common/contract/models_file.h"

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
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
    return wrong(model,
                 ".url: expected http:// or https://, found \"" + printable(access.url) + "\"");
  if (access.url.find('@') != std::string::npos)
    return wrong(model, ".url: a name or password in it: give key_variable or key_file");
  const bool has_key = !access.key_variable.empty() || !access.key_file.empty();
  if (plain && has_key && !is_local(access.url))
    return wrong(model, ".url: a key goes over https:// only, but to this machine");
  return ok_status();
}

Result<std::string> text_of(const Json& value, const std::string& model, const std::string& key) {
  constexpr std::size_t kMost = 4096;
  if (!value.is_string() || value.get_ref<const std::string&>().empty() ||
      kMost < value.get_ref<const std::string&>().size())
    return wrong(model, "." + key + ": expected a text of 1 to 4096 bytes");
  return value.get<std::string>();
}

Status read_member(const std::string& model, const std::string& key, const Json& value,
                   ModelAccess& out) {
  const auto put = [&](std::string& to) -> Status {
    PROCTOR_TRY(to, text_of(value, model, key));
    return ok_status();
  };
  if (key == "url") return put(out.url);
  if (key == "send_as") return put(out.send_as);
  if (key == "key_variable") return put(out.key_variable);
  if (key == "key_file") return put(out.key_file);
  if (key == "output_limit") return put(out.output_limit);
  if (key == "backoff_ms") {
    constexpr std::uint64_t kHour = 3'600'000;
    if (!value.is_number_unsigned() || kHour < value.get<std::uint64_t>())
      return wrong(model, ".backoff_ms: expected 0 to 3600000");
    out.backoff = std::chrono::milliseconds(value.get<std::uint64_t>());
    return ok_status();
  }
  if (key != "program") return wrong(model, ": unknown member \"" + printable(key, 100) + "\"");
  if (!value.is_array() || value.empty()) return wrong(model, ".program: expected its words");
  for (const Json& word : value) {
    PROCTOR_TRY(std::string text, text_of(word, model, key));
    out.program.push_back(std::move(text));
  }
  return ok_status();
}

}  // namespace

Result<ModelsFile> parse_models(std::string_view text) {
  PROCTOR_TRY(const Json document, parse_json(text, {.bytes_max = kFileBytes}));
  if (!document.is_object() || document.size() != 1 || !document.contains("models") ||
      !document["models"].is_object())
    return Error{Errc::kInvalid, "expected {\"models\": {...}}"};
  ModelsFile out;
  for (const auto& [name, members] : document["models"].items()) {
    if (!members.is_object()) return wrong(name, ": expected a mapping");
    ModelAccess access;
    for (const auto& [key, value] : members.items())
      PROCTOR_CHECK_OK(read_member(name, key, value, access));
    if (access.url.empty() == access.program.empty())
      return wrong(name, ": expected either url or program");
    if (!access.key_variable.empty() && !access.key_file.empty())
      return wrong(name, ": either key_variable or key_file");
    if (!access.url.empty()) PROCTOR_CHECK_OK(check_url(name, access));
    if (access.url.empty() && (!access.key_variable.empty() || !access.key_file.empty()))
      return wrong(name, ": a program finds its key itself");
    out.emplace(name, std::move(access));
  }
  return out;
}

Result<ModelsFile> load_models(const fs::path& file) {
  PROCTOR_TRY(const std::string text, read_file(file, kFileBytes));
  Result<ModelsFile> out = parse_models(text);
  if (!out.ok()) return in_context(file.string(), out.error());
  return out;
}

}  // namespace proctor
