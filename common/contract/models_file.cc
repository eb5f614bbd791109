#include "common/contract/models_file.h"

#include "common/base/git_program.h"
#include "common/base/json.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/document.h"
#include "common/contract/models_member.h"

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

}  // namespace proctor
