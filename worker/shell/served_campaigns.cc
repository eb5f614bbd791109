#include "worker/shell/served_campaigns.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "common/base/digest.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "worker/shell/spool.h"

namespace proctor {
namespace {

constexpr const char* kFile = "campaigns";
constexpr const char* kBefore = "last-campaign";  // address, campaign; or the campaign alone
constexpr std::size_t kKept = 64;
constexpr std::size_t kFileBytes = kKept * 2 * limits::kDetailBytes;

constexpr std::string_view kApart = "_at_";
constexpr std::size_t kWhoHex = 16;
constexpr const char* kKeyless = "keyless";

}  // namespace

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

}  // namespace proctor
