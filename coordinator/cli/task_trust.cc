#include "coordinator/cli/task_trust.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/pilot/screen.h"
#include "common/pilot/selfcheck.h"
#include "coordinator/cli/report_digests.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kNamed = 8, kWhyBytes = 300;

// Nothing: it is not there, or was edited since it was written.
std::string text_of(const Campaign& campaign, const std::string& name, std::size_t bytes) {
  const StateFolder folder{campaign.folder};
  const Result<std::string> text = read_file(folder.reports() / name, bytes);
  return text.ok() && as_listed(folder, name).ok() ? *text : "";
}

const Contract* still_there(const Campaign& campaign, const std::string& id, const Digest& digest,
                            const std::string& image) {
  const Contract* contract = campaign.find_contract(id);
  return contract != nullptr && contract->digest == digest && contract->environment.image == image
             ? contract
             : nullptr;
}

std::string bounded(const std::string& why) {
  return printable(why, kWhyBytes);
}

}  // namespace

std::map<std::string, std::string> distrusted_tasks(const Campaign& campaign) {
  std::map<std::string, std::string> out;
  const auto screen = parse_screen(text_of(campaign, "flakiness.json", kScreenBytes));
  if (screen.ok())
    for (const ScreenTask& task : screen->tasks) {
      if (task.verdict != ScreenVerdict::kFlaky && task.verdict != ScreenVerdict::kUndecided)
        continue;
      if (still_there(campaign, task.id, task.contract, task.image) == nullptr) continue;
      out[task.id] =
          std::string(to_string(task.verdict)) + (task.why.empty() ? "" : ": " + bounded(task.why));
    }
  // What is unsound measures nothing, however steadily.
  const auto checked = parse_selfcheck(text_of(campaign, "selfcheck.json", kSelfcheckBytes));
  if (checked.ok())
    for (const SelfcheckTask& task : checked->tasks) {
      const bool is_bad = task.verdict.starts_with("unsound") || task.verdict.starts_with("flaky");
      if (is_bad && still_there(campaign, task.id, task.contract, task.image) != nullptr)
        out[task.id] = bounded(task.verdict);
    }
  return out;
}

std::vector<std::string> trust_notes(const std::map<std::string, std::string>& distrusted) {
  std::vector<std::string> out;
  for (const auto& [task, why] : distrusted) {
    if (out.size() == kNamed) {
      out.push_back(fmt::format("and {} more tasks in reports/flakiness.json and selfcheck.json",
                                distrusted.size() - kNamed));
      break;
    }
    out.push_back(fmt::format("task {} was judged {}", printable(task, limits::kNameBytes), why));
  }
  return out;
}

}  // namespace proctor::cli
