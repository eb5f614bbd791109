#include "coordinator/cli/registered_files.h"

#include <algorithm>

#include "common/base/limits.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/cost_inputs.h"
#include "coordinator/shell/behind.h"

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

// Unless it is absent and may be.
Status keep_file(const fs::path& from, const fs::path& to, const std::string& name,
                 const KeptFile& file) {
  if (file.bytes) return keep(to, name, *file.bytes, file.program);
  const Result<std::string> bytes = read_file(from / name, limits::kConfigFileBytes);
  if (!bytes.ok() && bytes.error().code == Errc::kNotFound) return ok_status();
  if (!bytes.ok()) return bytes.error();
  return keep(to, name, *bytes, is_program(from / name));
}

std::string name_of(const Contract& contract, const fs::path& folder) {
  return fs::path(contract.origin.file).lexically_relative(folder).string();
}

// As sha256sum(1) has it: a line feed in a name is written as two characters, and the line says so.
std::string list_line(const std::string& name, const Digest& digest) {
  std::string escaped;
  for (const char c : name) escaped += c == '\n' ? "\\n" : c == '\\' ? "\\\\" : std::string(1, c);
  return (escaped == name ? "" : "\\") + digest.hex() + "  " + escaped + "\n";
}

// Of the regular files below it, in order.
std::vector<std::string> names_in(const fs::path& kept) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(kept, ec), end; !ec && it != end; it.increment(ec))
    if (fs::is_regular_file(it->symlink_status(ec)))
      names.push_back(it->path().lexically_relative(kept).string());
  std::ranges::sort(names);
  return names;
}

bool read_through_links(const std::string& name) {
  return name == kCampaignFile || name == kCostModelFile || name == kCostInputsFile;
}

// A path below the kept files as it is below the campaign.
fs::path at_home(const fs::path& path, const StateFolder& state) {
  return (state.campaign / path.lexically_relative(state.registered())).lexically_normal();
}
}  // namespace

bool is_program(const fs::path& file) {
  std::error_code ec;
  return (fs::status(file, ec).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

std::map<std::string, KeptFile> files_to_keep(const Campaign& campaign) {
  std::map<std::string, KeptFile> out;
  const auto add = [&](const fs::path& name, KeptFile kept) {
    out.insert_or_assign(name.lexically_normal().string(), kept);
  };
  add(kCampaignFile, {});
  for (const char* name : {kCostModelFile, kCostInputsFile}) add(name, {.may_be_absent = true});
  if (!campaign.failure_modes.empty()) add(kFailureModesFile, {.bytes = campaign.failure_modes});
  for (const Method& m : campaign.methods)
    for (const ReferencedFile& f : m.files)
      add(f.path, {.bytes = f.bytes, .program = f.mode == 0755});
  for (const Contract& c : campaign.contracts) {
    const fs::path name = name_of(c, campaign.folder);
    add(name, {});
    for (const ReferencedFile& f : c.files)
      add(name.parent_path() / f.path, {.bytes = f.bytes, .program = f.mode == 0755});
  }
  return out;
}

Result<std::string> list_kept(const fs::path& kept) {
  std::string out;
  for (const std::string& name : names_in(kept)) {
    PROCTOR_TRY(const std::string bytes, read_file(kept / name, limits::kReferencedFileBytes));
    out += list_line(name, sha256(bytes));
  }
  return out;
}

Status keep_registered(const Campaign& campaign) {
  const StateFolder state{campaign.folder};
  if (is_there(state.registered())) return ok_status();
  // Beside its place first: what was interrupted is none.
  const fs::path partial = state.registered().string() + ".partial";
  PROCTOR_CHECK_OK(make_private_dirs(state.state()));
  PROCTOR_CHECK_OK(remove_tree(partial));
  PROCTOR_CHECK_OK(make_private_dirs(partial));
  for (const auto& [name, file] : files_to_keep(campaign))
    PROCTOR_CHECK_OK(keep_file(campaign.folder, partial, name, file));
  // Before they are there: copies without a list are an earlier version's.
  PROCTOR_TRY(const std::string list, list_kept(partial));
  PROCTOR_CHECK_OK(write_file(kept_list(state), list));
  return rename_path(partial, state.registered());
}

std::optional<Campaign> load_kept(const StateFolder& state) {
  if (!is_folder(state.registered())) return std::nullopt;
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

bool is_own_file(const fs::path& campaign, const fs::path& name) {
  std::error_code ec;
  for (fs::path place = campaign; const fs::path& part : name)
    if (fs::is_symlink(fs::symlink_status(place /= part, ec))) return false;
  return true;
}

std::vector<std::string> changed_files(const StateFolder& state, bool all) {
  std::vector<std::string> out;
  for (const std::string& name : names_in(state.registered())) {
    const fs::path kept = state.registered() / name, here = state.campaign / name;
    const Result<std::string> was = read_file(kept, limits::kReferencedFileBytes);
    if (!was.ok()) continue;
    if (!is_own_file(state.campaign, name) && (all || !read_through_links(name))) {
      out.push_back(name + kNotItsOwn);
      continue;
    }
    const Result<std::string> is = read_file(here, limits::kReferencedFileBytes);
    if (!is.ok())
      out.push_back(name + (is.error().code == Errc::kNotFound ? " (gone)" : " (not readable)"));
    else if (*is != *was)
      out.push_back(name + " (changed)");
    else if (is_program(here) != is_program(kept))
      out.push_back(name + (is_program(here) ? " (executable now)" : " (not executable any more)"));
  }
  return out;
}
}  // namespace proctor::cli
