#include "common/contract/models_file.h"

#include <sys/stat.h>
#include <cstdlib>

#include "common/base/git_program.h"
#include "common/base/text.h"
#include "common/contract/fields.h"

namespace proctor {
namespace {
constexpr std::uint64_t kTokensMost = 100'000'000;
constexpr std::size_t kFileBytes = std::size_t{1} << 20;
constexpr TextRule kMemberRule{4096, "a text of 1 to 4096 bytes"};

// A whole number of `unit`, at most an hour.
void in_units(auto& v, const char* key, auto& member, std::chrono::milliseconds unit,
              std::uint64_t least) {
  std::int64_t n = member / unit;
  v(key, n, least, static_cast<std::uint64_t>(std::chrono::hours(1) / unit));
  keep(member, n * unit);
}

// Does the URL lead to this machine?
bool is_local(std::string_view url) {
  std::string_view host = url.substr(url.find("://") + 3);
  host = host.substr(0, host.find('/'));
  if (host.find('@') != std::string_view::npos) return false;
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  return host == "127.0.0.1" || host == "localhost";
}

void check_url(const Fields& f, const std::string& url, bool has_key) {
  const auto refuse = [&](const std::string& found, const char* expected) {
    f.complain("url", found, expected);
  };
  const bool plain = url.starts_with("http://");
  if (!plain && !url.starts_with("https://"))
    refuse('"' + printable(redact_urls(url)) + '"', "http:// or https://");
  else if (url.find('@') != std::string::npos)
    refuse("a name or password in it", "key_variable or key_file beside it");
  else if (plain && has_key && !is_local(url))
    refuse("a key over http://", "https:// only, but to this machine");
}

void check_access(const Fields& f, const ModelAccess& access) {
  const bool variable = !access.key_variable.empty(), file = !access.key_file.empty();
  const int ways = (access.url.empty() ? 0 : 1) + (access.program.empty() ? 0 : 1) +
                   (access.cassette.empty() ? 0 : 1);
  const auto refuse = [&](const char* found, const char* expected) {
    f.problems().add(f.at(), f.path(), found, expected);
  };
  if (ways != 1)
    refuse(ways == 0 ? "none" : "several", "one of url, program and cassette");
  else if (variable && file)
    refuse("both", "either key_variable or key_file");
  else if (!access.url.empty())
    check_url(f, access.url, variable || file);
  else if (variable || file)
    refuse("a key", access.program.empty() ? "none: a recording needs no key"
                                           : "none: a program finds its key itself");
}

struct Models {
  ModelsFile models;
};
void fields(auto& v, Is<Models> auto& m) {
  v("models", m.models);
  v.then(m, [](const Fields& f, const auto&) {
    if (f.find("models") == nullptr) f.missing("models", "a mapping of models");
  });
}
}  // namespace

void fields(auto& v, Is<ModelAccess> auto& a) {
  using Ms = std::chrono::milliseconds;
  v("url", a.url, kMemberRule);
  v.words("program", a.program);
  v("send_as", a.send_as, kMemberRule);
  v("key_variable", a.key_variable, kMemberRule);
  v("key_file", a.key_file, kMemberRule);
  v("output_limit", a.output_limit, kMemberRule);
  in_units(v, "backoff_ms", a.backoff, Ms(1), 0);
  v("api", a.api);
  v("auth", a.auth);
  v("ca_file", a.ca_file, kMemberRule);
  v("max_input", a.max_input, 1, kTokensMost);
  v("max_output", a.max_output, 1, kTokensMost);
  v("output_default", a.output_default, 1, kTokensMost);
  v("output_floor", a.output_floor, 1, kTokensMost);
  v("hidden_input_tokens", a.hidden_input, 0, kTokensMost);
  v("image_tokens", a.image_tokens, 1, kTokensMost);
  std::vector<std::string> tiers(a.tiers.begin(), a.tiers.end());
  v("tiers", tiers, kMemberRule);
  keep(a.tiers, std::set<std::string>(tiers.begin(), tiers.end()));
  v("errors_are_free", a.errors_are_free);
  v("delta", a.delta);
  v("stream_usage", a.stream_usage);
  v("cassette", a.cassette, kMemberRule);
  v("cassette_match", a.cassette_match);
  v("cassette_charges", a.cassette_charges);
  in_units(v, "first_byte_s", a.first_byte, Ms(1'000), 1);
  in_units(v, "idle_s", a.idle, Ms(1'000), 1);
  in_units(v, "total_s", a.total, Ms(1'000), 1);
  v.then(a, check_access);
}

Result<ModelsFile> parse_models(std::string_view text, std::string_view file) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != std::string_view::npos && text[begin] == '{';
  Diagnostics wrong;
  Problems problems{std::string(file), wrong};
  Models out;
  const auto document = read_document(text, json ? Format::kJson : format_of(file),
                                      std::string(file), wrong, {.bytes_max = kFileBytes});
  if (document && wrong.empty()) read_fields(document->root, "", problems, out);
  if (!wrong.empty()) {
    // A key in the wrong place is in no message.
    Diagnostics told;
    for (Diagnostic d : wrong.kept()) {
      if (d.found.starts_with('"')) d.found = "another value";
      told.add(std::move(d));
    }
    const std::string all = told.text();
    return Error{Errc::kInvalid, all.substr(0, all.size() - 1)};
  }
  for (auto& [name, access] : out.models)
    if (access.send_as.empty()) access.send_as = name;
  return std::move(out.models);
}

Result<ModelsFile> load_models(const fs::path& file) {
  PROCTOR_TRY(const std::string text, read_file(file, kFileBytes));
  return parse_models(text, file.string());
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
