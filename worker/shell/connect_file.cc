#include "worker/shell/connect_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/wire/curve.h"
#include "worker/shell/spool.h"

namespace proctor {
namespace {

constexpr std::size_t kStopsMax = 64, kAddressesOfOne = 8, kFilesMax = 256, kSecretsOfOne = 64;
constexpr std::uint32_t kPriorityMost = 9, kWeightMost = 1'000;

Result<std::uint32_t> number(const std::string& text, std::uint32_t least, std::uint32_t most,
                             const char* what) {
  const auto out = whole_number<std::uint32_t>(text);
  if (out && least <= *out && *out <= most) return *out;
  return Error{Errc::kInvalid, fmt::format("{} `{}`: a number from {} to {}", what,
                                           printable(text, 40), least, most)};
}

Result<std::string> server_key(const std::string& text, const fs::path& folder) {
  if (text == "-") return std::string();
  if (wire::is_z85_key(text)) return text;
  return wire::load_public_key(fs::path(text).is_absolute() ? fs::path(text) : folder / text);
}

constexpr std::string_view kModelWord = "model:";

// Absent: any.
Result<std::optional<std::vector<std::string>>> secrets_of(const std::string& text) {
  std::vector<std::string> names;
  if (text.empty() || text == "*") return std::optional<std::vector<std::string>>();
  if (text == "-") return std::optional(names);
  std::istringstream words(text);
  for (std::string name; std::getline(words, name, ',');) {
    std::string_view word = name;
    const bool model = take_word(word, kModelWord);
    const std::string_view more = model ? "_.-/" : "_";
    const bool plain = !word.empty() && std::ranges::all_of(word, [more](char c) {
      return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
             more.find(c) != std::string_view::npos;
    });
    if (!plain || names.size() == kSecretsOfOne)
      return Error{Errc::kInvalid, "secrets `" + printable(text, 200) +
                                       "`: names of variables, or model:NAME, with commas between "
                                       "them, - for none or * for any"};
    names.push_back(name);
  }
  return std::optional(names);
}

Result<Stop> parse_line(const std::string& line, const fs::path& folder) {
  std::istringstream words(line);
  std::string name, addresses, key, weight, priority, secrets, more;
  words >> name >> addresses >> key >> weight >> priority >> secrets >> more;
  if (!is_plain_name(name))
    return Error{Errc::kInvalid, "`" + printable(name, 60) + "` is not a name"};
  if (!more.empty()) return Error{Errc::kInvalid, "more than six columns"};
  Stop stop;
  stop.name = name;
  PROCTOR_TRY(stop.addresses, addresses_of(addresses));
  if (!key.empty()) {
    PROCTOR_TRY(stop.server_key, server_key(key, folder));
  }
  if (!weight.empty()) {
    PROCTOR_TRY(stop.weight, number(weight, 1, kWeightMost, "weight"));
  }
  if (!priority.empty()) {
    PROCTOR_TRY(stop.priority, number(priority, 0, kPriorityMost, "priority"));
  }
  PROCTOR_TRY(stop.secrets, secrets_of(secrets));
  return stop;
}

Status read_one(const fs::path& path, std::vector<Stop>& out, std::set<std::string>& names) {
  PROCTOR_TRY(const std::string text, read_file(path, limits::kConfigFileBytes));
  std::istringstream lines(text);
  std::string line;
  for (std::size_t n = 1; std::getline(lines, line); ++n) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const auto wrong = [&](const std::string& what) {
      return Error{Errc::kInvalid, fmt::format("{}:{}: {}", path.string(), n, what)};
    };
    Result<Stop> stop = parse_line(line, path.parent_path());
    if (!stop.ok()) return wrong(stop.error().detail);
    if (!names.insert(stop->name).second) return wrong(stop->name + " is named twice");
    if (out.size() == kStopsMax) return wrong(fmt::format("more than {} lines", kStopsMax));
    out.push_back(std::move(stop).value());
  }
  return ok_status();
}

}  // namespace

Result<std::vector<std::string>> addresses_of(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view one : split(text, ',')) {
    if (one.empty() || out.size() == kAddressesOfOne)
      return Error{Errc::kInvalid, "`" + printable(text, 200) +
                                       "`: addresses are tcp://HOST:PORT or ipc://PATH, several "
                                       "with commas between them"};
    out.emplace_back(one);
  }
  return out;
}

Result<std::vector<Stop>> read_connect_file(const fs::path& path) {
  std::vector<fs::path> files{path};
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    files.clear();
    for (fs::directory_iterator it(path, ec), end; !ec && it != end && files.size() < kFilesMax;
         it.increment(ec))
      if (!it->path().filename().string().starts_with('.')) files.push_back(it->path());
    std::ranges::sort(files);
  }
  std::vector<Stop> out;
  std::set<std::string> names;
  for (const fs::path& file : files) PROCTOR_CHECK_OK(read_one(file, out, names));
  return out;
}

}  // namespace proctor
