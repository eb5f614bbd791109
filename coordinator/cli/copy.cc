// proctor copy CAMPAIGN NEW: the same campaign, not registered and never run.
#include <algorithm>
#include <cstdio>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {
namespace {

Error cannot(const std::string& what, const std::error_code& ec) {
  return {Errc::kUnavailable, "copy: " + what + ": " + ec.message()};
}

// What a run of it made, and what says that it is registered.
bool is_of_the_old_one(const StateFolder& campaign, const fs::path& entry) {
  for (const fs::path& made : {campaign.plan(), campaign.registration(), campaign.state(),
                               campaign.runs(), campaign.reports()})
    if (entry == made) return true;
  return false;
}

Status copy_files(const fs::path& from, const fs::path& to) {
  const StateFolder old{from};
  std::error_code ec;
  for (fs::directory_iterator it(from, ec), end; !ec && it != end; it.increment(ec)) {
    if (is_of_the_old_one(old, it->path())) continue;
    fs::copy(it->path(), to / it->path().filename(),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
    if (ec) return cannot(it->path().string(), ec);
  }
  return ec ? Status(cannot(from.string(), ec)) : ok_status();
}

Status copy_campaign(const std::string& folder, const std::string& name) {
  std::error_code ec;
  const fs::path from = fs::canonical(folder, ec);
  if (ec || !fs::exists(from / "campaign.yaml", ec)) return no_campaign(folder);
  const fs::path to = fs::weakly_canonical(fs::absolute(name), ec);
  if (ec) return cannot(name, ec);
  if (fs::exists(fs::symlink_status(to, ec)))
    return Error{Errc::kConflict, to.string() + " is there already"};
  const auto [outer, inner] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  if (outer == from.end())
    return Error{Errc::kInvalid, to.string() + " lies in the campaign that is copied"};
  // Beside its place first: a copy that was interrupted is no campaign.
  const fs::path partial = to.string() + ".partial";
  PROCTOR_CHECK_OK(remove_tree(partial));
  PROCTOR_CHECK_OK(make_dirs(partial));
  if (const Status copied = copy_files(from, partial); !copied.ok()) {
    (void)remove_tree(partial);
    return copied;
  }
  fs::rename(partial, to, ec);
  if (ec) return cannot(to.string(), ec);
  std::printf(
      "%s is a campaign of its own, not registered and without a run.\n"
      "Places outside of it that its contracts name are looked for from there: proctor check %s\n",
      to.string().c_str(), name.c_str());
  return ok_status();
}

}  // namespace

void add_copy(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "copy", "the same campaign again, fresh: no plan, no runs",
      "Example:\n  proctor copy my-campaign my-campaign-2\n"
      "For what may not change in a registered campaign: copy it, and edit the copy.");
  struct Args {
    std::string folder, name;
  };
  auto args = std::make_shared<Args>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("NEW", args->name, "the folder to make").required();
  command.callback(
      [=, &exit_code] { exit_code = code_of(copy_campaign(args->folder, args->name)); });
}

}  // namespace proctor::cli
