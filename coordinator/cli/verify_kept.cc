#include "coordinator/cli/verify_kept.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "common/base/limits.h"
#include "coordinator/cli/registered_files.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
namespace {

// From a file's name, as a list writes it, to its line.
std::map<std::string, std::string> by_name(std::string_view list) {
  constexpr std::size_t kNameAt = 2 * Digest::kBytes + 2;
  std::map<std::string, std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('\n'), list.size() - 1) + 1;
    const std::string_view line = list.substr(0, end);
    list.remove_prefix(end);
    const std::size_t escaped = line.starts_with('\\') ? 1 : 0;
    if (kNameAt + escaped < line.size())
      out.emplace(line.substr(kNameAt + escaped, line.size() - kNameAt - escaped - 1), line);
  }
  return out;
}

class KeptAudit {
 public:
  KeptAudit(const Campaign& campaign, const FolderProblem& problem)
      : state_{campaign.folder}, kept_(state_.registered()), problem_(problem) {}

  void add(const Campaign& campaign, const Registration& registration,
           const std::optional<std::string>& sealed) {
    std::error_code ec;
    const fs::file_status is = fs::symlink_status(kept_, ec);
    if (!fs::exists(is)) {
      if (sealed) tell(kept_, "is missing: it held the files as they were registered");
      return;
    }
    if (!fs::is_directory(is)) return tell(kept_, "is no folder of its own");
    look_at_files(files_to_keep(campaign));
    const bool listed = sealed && look_at_list(*sealed);
    for (const std::string& name : missing_) tell(kept_ / name, "is missing");
    if (!listed) look_at_meaning(registration);
  }

 private:
  void tell(const fs::path& file, const std::string& what) {
    told_.insert(file);
    problem_(file.string(), what);
  }

  // Against what is known of them without a list.
  void look_at_files(const std::map<std::string, KeptFile>& files) {
    for (const auto& [name, file] : files)
      if (!file.may_be_absent) missing_.insert(name);
    std::error_code ec;
    for (fs::recursive_directory_iterator it(kept_, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string name = it->path().lexically_relative(kept_).string();
      const fs::file_status status = it->symlink_status(ec);
      if (fs::is_directory(status)) continue;
      missing_.erase(name);
      const auto known = files.find(name);
      if (known == files.end())
        tell(it->path(), "is not of the files that were registered: remove it");
      else if (!fs::is_regular_file(status))
        tell(it->path(), "is no file of its own");
      else
        look_at_file(it->path(), known->second);
    }
    if (ec) tell(kept_, "cannot be read: " + ec.message());
  }

  void look_at_file(const fs::path& file, const KeptFile& was) {
    if (!was.bytes) return;
    const Result<std::string> is = read_file(file, limits::kReferencedFileBytes);
    std::error_code ec;
    const bool program =
        (fs::status(file, ec).permissions() & fs::perms::owner_exec) != fs::perms::none;
    if (!is.ok() || *is != *was.bytes)
      tell(file, "is not as it was registered");
    else if (program != was.program)
      tell(file, program ? "is executable, and was not when it was registered"
                         : "is not executable, and was when it was registered");
  }

  // Against the list, byte for byte.  False: it is not the one that the journal speaks of.
  bool look_at_list(const std::string& sealed) {
    const fs::path file = kept_list(state_);
    const Result<std::string> list = read_file(file, limits::kPlanFileBytes);
    if (!list.ok() || sha256(*list).hex() != sealed) {
      tell(file, !list.ok() && list.error().code == Errc::kNotFound
                     ? "is missing: it lists the files that were registered"
                     : "is not the list of the registered files that the journal speaks of");
      return false;
    }
    const Result<std::string> now = list_kept(kept_);
    if (!now.ok()) {
      tell(kept_, now.error().detail);
      return true;
    }
    const std::map<std::string, std::string> lines = by_name(*now);
    for (const auto& [name, line] : by_name(*list)) {
      const auto found = lines.find(name);
      if (found == lines.end()) {
        if (!told_.contains(kept_ / name)) missing_.insert(name);
      } else if (found->second != line && !told_.contains(kept_ / name)) {
        tell(kept_ / name, "is not as it was registered");
      }
    }
    return true;
  }

  // What nothing lists is held against the registration alone, which knows no comments.
  void look_at_meaning(const Registration& registration) {
    if (!told_.empty() && told_ != std::set<fs::path>{kept_list(state_)}) return;
    const std::optional<Campaign> loaded = load_kept(state_);
    if (!loaded) return tell(kept_, "is no campaign any more");
    const Result<Registration> again =
        make_registration(*loaded, registration.plan, registration.at);
    if (!again.ok()) return tell(kept_, again.error().detail);
    for (const std::string& d : differences(registration, *again))
      tell(kept_, "does not make the registration again: " + d);
  }

  StateFolder state_;
  fs::path kept_;
  const FolderProblem& problem_;
  std::set<std::string> missing_;
  std::set<fs::path> told_;
};

}  // namespace

void verify_kept(const Campaign& campaign, const Registration& registration,
                 const std::optional<std::string>& sealed, const FolderProblem& problem) {
  KeptAudit(campaign, problem).add(campaign, registration, sealed);
}

}  // namespace proctor::cli
