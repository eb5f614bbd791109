// proctor init DIR: a first campaign, commented, that runs as it is.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/subprocess.h"
#include "common/contract/scaffold.h"
#include "common/wire/curve.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
namespace {
// A folder's name as an id: lower case, what does not fit becomes a dash.
std::string id_from(const fs::path& dir) {
  std::string out;
  for (const char c : dir.filename().string()) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool fits = std::isalnum(static_cast<unsigned char>(lower)) != 0 && lower > 0;
    out += fits ? lower : '-';
  }
  while (!out.empty() && out.front() == '-') out.erase(0, 1);
  return out.empty() ? "campaign" : out;
}

void put_commit(std::string& text, const std::string& commit) {
  for (std::size_t at = text.find(kCommitPlaceholder); at != std::string::npos;
       at = text.find(kCommitPlaceholder, at))
    text.replace(at, kCommitPlaceholder.size(), commit);
}

Status init(const std::string& where) {
  const fs::path dir = fs::absolute(where).lexically_normal();
  std::error_code ec;
  if (fs::exists(dir, ec) && !fs::is_empty(dir, ec))
    return Error{Errc::kConflict, dir.string() + " is not empty"};
  PROCTOR_CHECK_OK(make_dirs(dir));
  auto files = scaffold_files(id_from(dir.has_filename() ? dir : dir.parent_path()));
  const auto write_all = [&]() -> Status {
    for (const auto& [path, text] : files) {
      PROCTOR_CHECK_OK(make_dirs((dir / path).parent_path()));
      PROCTOR_CHECK_OK(write_file(dir / path, text, Durability::kLazy, kOpenFile));
    }
    return ok_status();
  };
  PROCTOR_CHECK_OK(write_all());
  CommandSpec make_repo;
  make_repo.argv = {"sh", "make-repo.sh"};
  make_repo.cwd = dir;
  PROCTOR_TRY(std::string commit, run_for_output(make_repo));
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())) != 0)
    commit.pop_back();
  for (auto& [path, text] : files) put_commit(text, commit);
  PROCTOR_CHECK_OK(write_all());
  std::printf("%s is ready:\n", dir.c_str());
  for (const auto& [path, text] : files) std::printf("  %s\n", path.c_str());
  std::printf("Next: proctor check %s && proctor run %s\n", where.c_str(), where.c_str());
  return ok_status();
}
}  // namespace

void add_init(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("init", "scaffold a commented campaign that runs as it is",
                         "Example:\n  proctor init demo && proctor run demo");
  const auto dir = arguments<std::string>(command, exit_code, init);
  command.add_option("DIR", *dir, "a new or empty folder; its name becomes the campaign's")
      .required();
}

// proctor copy CAMPAIGN NEW: the same campaign, not registered and never run.

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

struct CopyArgs {
  std::string folder, name;
};

Status copy_campaign(const CopyArgs& args) {
  const auto& [folder, name] = args;
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
  const auto args = arguments<CopyArgs>(command, exit_code, copy_campaign);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("NEW", args->name, "the folder to make").required();
}

// proctor keygen CAMPAIGN [--worker NAME]: CURVE key pairs of a coordinator and its workers.

namespace {
struct KeygenArgs {
  std::string folder;
  std::vector<std::string> workers;
};

Status keygen(const KeygenArgs& args) {
  const std::vector<std::string>& workers = args.workers;
  PROCTOR_TRY(const StateFolder state, campaign_folder(args.folder));
  std::string allow;
  wire::AllowList list;
  if (is_there(state.allow_list())) {
    PROCTOR_TRY(list, wire::load_allow_list(state.allow_list()));
    PROCTOR_TRY(allow, read_file(state.allow_list(), limits::kConfigFileBytes));
  }
  // All names are looked at before any file is written.
  std::vector<wire::KeyPair> pairs;
  for (const std::string& name : workers) {
    PROCTOR_TRY(wire::KeyPair pair, wire::generate_key());
    PROCTOR_CHECK_OK(list.add(pair.public_z85, name));
    pairs.push_back(std::move(pair));
  }
  PROCTOR_CHECK_OK(make_private_dirs(state.keys()));
  const fs::path secret = state.keys() / "coordinator.key",
                 shared = state.keys() / "coordinator.pub";
  if (!is_there(secret)) {
    PROCTOR_TRY(const wire::KeyPair pair, wire::generate_key());
    PROCTOR_CHECK_OK(wire::save_key(pair, secret));
    PROCTOR_CHECK_OK(wire::save_public_key(pair.public_z85, "coordinator", shared));
    std::printf("coordinator: %s (keep it here), %s (give it to workers)\n", secret.c_str(),
                shared.c_str());
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const fs::path path = state.keys() / (workers[i] + ".key");
    PROCTOR_CHECK_OK(wire::save_key(pairs[i], path));
    allow += pairs[i].public_z85 + " " + workers[i] + "\n";
    std::printf("worker %s: %s (move it to that machine)\n", workers[i].c_str(), path.c_str());
  }
  constexpr unsigned kOwnerOnly = 0600;
  PROCTOR_CHECK_OK(write_file(state.allow_list(), allow, Durability::kSync, kOwnerOnly));
  PROCTOR_TRY(list, wire::load_allow_list(state.allow_list()));
  std::printf("%zu %s may join (%s)\n", list.size(), list.size() == 1 ? "worker" : "workers",
              state.allow_list().c_str());
  return ok_status();
}
}  // namespace

void add_keygen(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("keygen", "CURVE key pairs for the coordinator and its workers",
                         "Example:\n  proctor keygen my-campaign --worker build7 --worker build8");
  const auto args = arguments<KeygenArgs>(command, exit_code, keygen);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("--worker", args->workers, "make a key for this worker and let it in");
}
}  // namespace proctor::cli
