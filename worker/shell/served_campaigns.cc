#include "worker/shell/served_campaigns.h"

#include <algorithm>
#include <sstream>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "worker/shell/spool.h"

namespace proctor {
namespace {

constexpr const char* kFile = "campaigns";
constexpr const char* kBefore = "last-campaign";  // address, campaign; or the campaign alone
constexpr std::size_t kKept = 64;
constexpr std::size_t kFileBytes = kKept * 2 * limits::kDetailBytes;

}  // namespace

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
    out.push_back({name, line.substr(space + 1)});
  }
  return out;
}

void remember_campaign(const fs::path& home, const ServedCampaign& served) {
  std::vector<ServedCampaign> all = served_campaigns(home);
  std::erase_if(all, [&](const ServedCampaign& one) { return one.campaign == served.campaign; });
  all.push_back(served);
  if (kKept < all.size()) all.erase(all.begin());
  std::string text;
  for (const ServedCampaign& one : all) text += one.campaign + " " + one.address + "\n";
  if (const Status kept = write_file(home / kFile, text); !kept.ok())
    log::warn("remember the campaign: " + kept.error().detail);
}

}  // namespace proctor
