#include "worker/shell/coordinators.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "common/base/digest.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/wire/curve.h"
#include "worker/shell/spool.h"

namespace proctor {
constexpr const char* kFile = "campaigns";
constexpr const char* kBefore = "last-campaign";  // address, campaign; or the campaign alone
constexpr std::size_t kKept = 64;
constexpr std::size_t kFileBytes = kKept * 2 * limits::kDetailBytes;

constexpr std::string_view kApart = "_at_";
constexpr std::size_t kWhoHex = 16;
constexpr const char* kKeyless = "keyless";

std::string who_of(std::string_view server_key) {
  return server_key.empty() ? kKeyless : sha256(server_key).hex().substr(0, kWhoHex);
}

bool is_kept_apart(std::string_view name) {
  const std::size_t at = name.rfind(kApart);
  if (at == 0 || at == std::string_view::npos) return false;
  const std::string_view who = name.substr(at + kApart.size());
  return who == kKeyless || (who.size() == kWhoHex &&
                             who.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

std::string_view id_of(std::string_view kept) {
  return is_kept_apart(kept) ? kept.substr(0, kept.rfind(kApart)) : kept;
}

std::optional<std::string> kept_name(const std::vector<ServedCampaign>& served,
                                     const std::string& id, const std::string& who) {
  bool of_another = false;
  std::optional<std::string> unsaid;
  for (const ServedCampaign& one : served) {
    if (id_of(one.campaign) != id) continue;
    if (one.who == who) return one.campaign;
    if (one.who.empty()) unsaid = one.campaign;
    of_another = of_another || !one.who.empty();
  }
  if (unsaid) return unsaid;
  if (!of_another) return id;
  std::string apart = id + std::string(kApart) + who;
  if (limits::kNameBytes < apart.size()) return std::nullopt;
  return apart;
}

std::vector<ServedCampaign> served_campaigns(const fs::path& home) {
  std::vector<ServedCampaign> out;
  const Result<std::string> text = read_file(home / kFile, kFileBytes);
  if (!text.ok()) {
    const Result<std::string> last = read_file(home / kBefore, limits::kDetailBytes);
    if (!last.ok()) return out;
    const std::string name = last->substr(last->rfind('\n') + 1);
    if (is_plain_name(name)) out.push_back({name, last->substr(0, last->find('\n'))});
    return out;
  }
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    if (space == std::string::npos || !is_plain_name(name)) continue;
    const std::size_t tab = std::min(line.rfind('\t'), line.size());
    out.push_back({name, line.substr(space + 1, tab - space - 1),
                   tab == line.size() ? std::string() : line.substr(tab + 1)});
  }
  return out;
}

void take(std::vector<ServedCampaign>& all, const ServedCampaign& served) {
  std::erase_if(all, [&](const ServedCampaign& one) { return one.campaign == served.campaign; });
  all.push_back(served);
  if (all.size() <= kKept) return;
  std::map<std::string, std::size_t> of;
  for (const ServedCampaign& one : all) ++of[one.who];
  const auto most = std::ranges::max_element(
      of, {}, [](const std::pair<const std::string, std::size_t>& one) { return one.second; });
  const auto oldest = std::ranges::find(all, most->first, &ServedCampaign::who);
  if (oldest != all.end()) all.erase(oldest);
}

void remember_campaign(const fs::path& home, const ServedCampaign& served) {
  std::vector<ServedCampaign> all = served_campaigns(home);
  take(all, served);
  std::string text;
  for (const ServedCampaign& one : all) {
    text += one.campaign + " " + one.address;
    if (!one.who.empty()) text += "\t" + one.who;
    text += "\n";
  }
  if (const Status kept = write_file(home / kFile, text); !kept.ok())
    log::warn("remember the campaign: " + kept.error().detail);
}

void Addresses::begin_at(const std::string& address) {
  const auto it = std::ranges::find(all_, address);
  if (it != all_.end()) at_ = static_cast<std::size_t>(it - all_.begin());
}

bool Addresses::next() {
  if (!has_choice()) return false;
  at_ = (at_ + 1) % all_.size();
  return true;
}

void Addresses::sent_away(Instant now, bool again) {
  at_ = 0;
  if (again)
    rests_until_ = now + kRest;
  else
    over_ = true;
}

void Addresses::replace(std::vector<std::string> all) {
  if (all != all_) {
    const std::string here = at();
    all_ = std::move(all);
    at_ = 0;
    begin_at(here);
  }
  over_ = false;
  rests_until_.reset();
}

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
