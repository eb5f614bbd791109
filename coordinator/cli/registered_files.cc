#include "coordinator/cli/registered_files.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "common/base/limits.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/cost_inputs.h"

namespace proctor::cli {
namespace {

constexpr unsigned kPrivateProgram = 0700;

Status keep(const fs::path& folder, const std::string& name, std::string_view bytes,
            bool executable) {
  const fs::path path = folder / name;
  PROCTOR_CHECK_OK(make_private_dirs(path.parent_path()));
  // Lazily: what a power loss tears makes no registration, and is not believed then.
  return write_file(path, bytes, Durability::kLazy, executable ? kPrivateProgram : kPrivateFile);
}

bool is_program(const fs::path& file) {
  std::error_code ec;
  return (fs::status(file, ec).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

// A file that the campaign consists of, unless it is absent and may be.
Status keep_text(const fs::path& from, const fs::path& to, const std::string& name) {
  const Result<std::string> bytes = read_file(from / name, limits::kConfigFileBytes);
  if (!bytes.ok() && bytes.error().code == Errc::kNotFound) return ok_status();
  if (!bytes.ok()) return bytes.error();
  return keep(to, name, *bytes, is_program(from / name));
}

std::string name_of(const Contract& contract, const fs::path& folder) {
  return fs::path(contract.origin.file).lexically_relative(folder).string();
}

Status keep_all(const Campaign& campaign, const fs::path& to) {
  const fs::path& from = campaign.folder;
  for (const char* name : {kCampaignFile, kCostModelFile, kCostInputsFile})
    PROCTOR_CHECK_OK(keep_text(from, to, name));
  for (const Method& m : campaign.methods)
    for (const ReferencedFile& f : m.files)
      PROCTOR_CHECK_OK(keep(to, f.path, f.bytes, f.mode == 0755));
  for (const Contract& c : campaign.contracts) {
    const std::string name = name_of(c, from);
    PROCTOR_CHECK_OK(keep_text(from, to, name));
    const fs::path folder = fs::path(name).parent_path();
    for (const ReferencedFile& f : c.files)
      PROCTOR_CHECK_OK(keep(to, (folder / f.path).string(), f.bytes, f.mode == 0755));
  }
  return ok_status();
}

// What keep_all() keeps, with the bytes of those that a campaign has in full.
struct Kept {
  bool may_be_absent = false;
  std::optional<std::string_view> bytes{};
};
std::map<std::string, Kept> files_of(const Campaign& campaign) {
  std::map<std::string, Kept> out;
  const auto add = [&](const fs::path& name, Kept kept) {
    out.insert_or_assign(name.lexically_normal().string(), kept);
  };
  add(kCampaignFile, {});
  for (const char* name : {kCostModelFile, kCostInputsFile}) add(name, {.may_be_absent = true});
  for (const Method& m : campaign.methods)
    for (const ReferencedFile& f : m.files) add(f.path, {.bytes = f.bytes});
  for (const Contract& c : campaign.contracts) {
    const fs::path name = name_of(c, campaign.folder);
    add(name, {});
    for (const ReferencedFile& f : c.files) add(name.parent_path() / f.path, {.bytes = f.bytes});
  }
  return out;
}

// A path below the kept files as it is below the campaign.
fs::path at_home(const fs::path& path, const StateFolder& state) {
  return (state.campaign / path.lexically_relative(state.registered())).lexically_normal();
}

}  // namespace

Status keep_registered(const Campaign& campaign) {
  const StateFolder state{campaign.folder};
  std::error_code ec;
  if (fs::exists(state.registered(), ec)) return ok_status();
  // Beside its place first: what was interrupted is none.
  const fs::path partial = state.registered().string() + ".partial";
  PROCTOR_CHECK_OK(make_private_dirs(state.state()));
  PROCTOR_CHECK_OK(remove_tree(partial));
  PROCTOR_CHECK_OK(make_private_dirs(partial));
  PROCTOR_CHECK_OK(keep_all(campaign, partial));
  return rename_path(partial, state.registered());
}

std::optional<Campaign> load_kept(const StateFolder& state) {
  std::error_code ec;
  if (!fs::is_directory(state.registered(), ec)) return std::nullopt;
  Diagnostics unsaid;
  Result<Campaign> loaded = load_campaign(state.registered(), unsaid);
  if (!loaded.ok()) return std::nullopt;
  Campaign& c = *loaded;
  c.folder = c.origin.folder = state.campaign;
  for (Contract& contract : c.contracts) {
    contract.origin.folder = at_home(contract.origin.folder, state);
    contract.origin.file = at_home(contract.origin.file, state).string();
  }
  return std::move(loaded).value();
}

std::vector<std::string> changed_files(const StateFolder& state) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(state.registered(), ec), end; !ec && it != end;
       it.increment(ec))
    if (it->is_regular_file(ec))
      names.push_back(it->path().lexically_relative(state.registered()).string());
  std::ranges::sort(names);
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const fs::path kept = state.registered() / name, here = state.campaign / name;
    const Result<std::string> was = read_file(kept, limits::kReferencedFileBytes);
    const Result<std::string> is = read_file(here, limits::kReferencedFileBytes);
    if (!was.ok()) continue;
    if (!is.ok())
      out.push_back(name + (is.error().code == Errc::kNotFound ? " (gone)" : " (not readable)"));
    else if (*is != *was)
      out.push_back(name + " (changed)");
    else if (is_program(here) != is_program(kept))
      out.push_back(name + (is_program(here) ? " (executable now)" : " (not executable any more)"));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> wrong_kept(const Campaign& campaign) {
  const fs::path kept = StateFolder{campaign.folder}.registered();
  std::error_code ec;
  std::vector<std::pair<std::string, std::string>> out;
  if (!fs::exists(fs::symlink_status(kept, ec))) return out;
  const auto tell = [&](const fs::path& file, const std::string& what) {
    out.emplace_back(file.string(), what);
  };
  if (!fs::is_directory(fs::symlink_status(kept, ec))) {
    tell(kept, "is no folder of its own");
    return out;
  }
  const std::map<std::string, Kept> files = files_of(campaign);
  std::set<std::string> missing;
  for (const auto& [name, file] : files)
    if (!file.may_be_absent) missing.insert(name);
  for (fs::recursive_directory_iterator it(kept, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().lexically_relative(kept).string();
    const fs::file_status status = it->symlink_status(ec);
    if (fs::is_directory(status)) continue;
    missing.erase(name);
    const auto known = files.find(name);
    if (known == files.end())
      tell(it->path(), "is not of the files that were registered: remove it");
    else if (!fs::is_regular_file(status))
      tell(it->path(), "is no file of its own");
    else if (const auto is = read_file(it->path(), limits::kReferencedFileBytes);
             known->second.bytes && (!is.ok() || *is != *known->second.bytes))
      tell(it->path(), "is not as it was registered");
  }
  if (ec) tell(kept, "cannot be read: " + ec.message());
  for (const std::string& name : missing) tell(kept / name, "is missing");
  return out;
}

}  // namespace proctor::cli
