#include "common/contract/file_source.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <set>

#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/cost_model_parser.h"

namespace proctor {
namespace {
Result<UniqueFd> open_below(int folder, const std::string& name, int flags,
                            const std::string& path) {
  UniqueFd fd(
      ::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (fd.valid()) return fd;
  const int why = errno;
  struct stat st {};
  if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
    return Error{Errc::kInvalid, path + ": a symbolic link"};
  return errno_error(path, why);
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string out;
  std::string chunk(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path, errno);
    if (n == 0) return out;
    out.append(chunk, 0, static_cast<std::size_t>(n));
    if (limits::kReferencedFileBytes < out.size())
      return Error{Errc::kExhausted, path + ": larger than " +
                                         std::to_string(limits::kReferencedFileBytes) + " bytes"};
  }
}
}  // namespace

Result<std::unique_ptr<FolderFiles>> FolderFiles::open(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(folder.string(), errno);
  return std::unique_ptr<FolderFiles>(new FolderFiles(std::move(fd)));
}

Result<ReferencedFile> FolderFiles::read(const std::string& path) const {
  if (!is_safe_relative(path))
    return Error{Errc::kInvalid, path + ": not a path below the contract's folder"};
  UniqueFd held;
  int folder = folder_.get();
  std::size_t begin = 0;
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       begin = slash + 1, slash = path.find('/', begin)) {
    PROCTOR_TRY(
        held, open_below(folder, path.substr(begin, slash - begin), O_RDONLY | O_DIRECTORY, path));
    folder = held.get();
  }
  PROCTOR_TRY(const UniqueFd fd, open_below(folder, path.substr(begin), O_RDONLY, path));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_error(path, errno);
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, path + ": not a regular file"};
  PROCTOR_TRY(std::string bytes, read_all(fd.get(), path));
  return ReferencedFile{path, (st.st_mode & S_IXUSR) != 0 ? 0755U : 0644U, std::move(bytes)};
}

void GivenFiles::add(ReferencedFile file) {
  std::string path = file.path;
  files_.insert_or_assign(std::move(path), std::move(file));
}

Result<ReferencedFile> GivenFiles::read(const std::string& path) const {
  const auto it = files_.find(path);
  if (it == files_.end()) return Error{Errc::kNotFound, path + ": not in the bundle"};
  return it->second;
}

// The folder of a campaign: which contract files there are, and reading them.

namespace {
constexpr std::size_t kContractsMax = 100'000;

class Loader {
 public:
  Loader(const fs::path& folder, Diagnostics& out) : folder_(folder), out_(out) {}

  Result<Campaign> load() {
    const std::size_t before = out_.count();
    const auto failed = [&] {
      return Error{Errc::kInvalid,
                   std::to_string(out_.count() - before) + " errors in " + folder_.string()};
    };
    const std::string shown = (folder_ / kCampaignFile).string();
    const Result<std::string> text = read_file(folder_ / kCampaignFile, limits::kConfigFileBytes);
    if (!text.ok()) {
      out_.add({shown, {}, "", text.error().detail, "a readable file", ""});
      return failed();
    }
    const auto files = FolderFiles::open(folder_);
    if (!files.ok()) {
      out_.add({shown, {}, "", files.error().detail, "a folder", ""});
      return failed();
    }
    const auto document = read_document(*text, Format::kYaml, shown, out_);
    if (!document) return failed();
    CampaignText campaign = parse_campaign(*document, **files, out_);
    Campaign& c = campaign.campaign;
    std::error_code ec;
    c.folder = c.origin.folder = fs::absolute(folder_, ec).lexically_normal();
    for (const CampaignText::Pattern& p : campaign.contracts) add_contracts(p, c);
    load_cost_model(c);
    load_cost_inputs(c, out_.count() == before);
    check_campaign(c, out_);
    if (out_.count() != before) return failed();
    return std::move(c);
  }

 private:
  void add_contracts(const CampaignText::Pattern& pattern, Campaign& out) {
    std::vector<std::string> found = matches(pattern);
    if (found.empty())
      complain(pattern, "no file", "at least one contract at " + (folder_ / pattern.path).string());
    for (std::string& path : found) {
      if (!seen_.insert(path).second) {
        complain(pattern, path + " again", "each contract once");
        continue;
      }
      if (kContractsMax < seen_.size())
        return complain(pattern, "more than 100000 contracts", "at most that many");
      if (const std::string link = link_on_the_way(path); !link.empty()) {
        complain(
            pattern, link + ", a symbolic link",
            "files of the campaign's own folder: copy them, what a link leads to is no part of "
            "it");
        continue;
      }
      const fs::path file = folder_ / path;
      auto c = load_contract(file, file.string(), out_);
      if (!c) continue;
      if (out.derived_from) c->origin.folder = derived_base(*out.derived_from, c->id);
      out.contracts.push_back(*std::move(c));
    }
  }

  // The campaign lies at regrades/NAME of the one that it is derived from.
  fs::path derived_base(const DerivedFrom& from, const std::string& task) const {
    const auto base = from.bases.find(task);
    const fs::path other = fs::absolute(folder_).lexically_normal().parent_path().parent_path();
    return base == from.bases.end() ? other : other / base->second;
  }

  // As of the files that a contract names: nothing outside the folder becomes part of a campaign.
  std::string link_on_the_way(const fs::path& path) const {
    std::error_code ec;
    fs::path at;
    for (const fs::path& part : path) {
      at /= part;
      if (fs::is_symlink(folder_ / at, ec)) return at.string();
    }
    return "";
  }

  void complain(const CampaignText::Pattern& pattern, std::string found, std::string expected) {
    out_.add({(folder_ / kCampaignFile).string(), pattern.at, "contracts", std::move(found),
              std::move(expected), ""});
  }

  // In byte order, so that the order of a folder on disk never matters.
  std::vector<std::string> matches(const CampaignText::Pattern& pattern) {
    const fs::path path(pattern.path);
    const std::string name = path.filename().string();
    const fs::path parent = path.parent_path();
    std::vector<std::string> found;
    std::error_code ec;
    for (fs::directory_iterator it(folder_ / parent, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string file = it->path().filename().string();
      if (::fnmatch(name.c_str(), file.c_str(), FNM_PERIOD) != 0) continue;
      std::error_code gone;
      const fs::file_type type = it->status(gone).type();
      if (type == fs::file_type::regular) {
        found.push_back((parent / file).string());
      } else if (type != fs::file_type::directory || file.ends_with(".yaml")) {
        // Left out, a task would be gone without a word.  A folder of patches is none.
        complain(pattern,
                 (parent / file).string() +
                     (type == fs::file_type::directory ? ", a folder" : ", no regular file"),
                 "regular files");
      }
    }
    std::ranges::sort(found);
    return found;
  }

  void load_cost_model(Campaign& out) {
    const fs::path file = folder_ / kCostModelFile;
    const Result<std::string> csv = read_file(file, limits::kConfigFileBytes);
    if (csv.ok()) {
      out.cost_model = parse_cost_model(*csv, file.string(), out_);
    } else if (csv.error().code == Errc::kNotFound) {
      out.cost_model = fallback_cost_model();
    } else {
      out_.add({file.string(), {}, "", csv.error().detail, "a readable file", ""});
    }
  }

  // After an error above not every name is known, and complaints about them would be noise.
  void load_cost_inputs(Campaign& out, bool names_known) {
    const fs::path file = folder_ / kCostInputsFile;
    const Result<std::string> json = read_file(file, limits::kConfigFileBytes);
    if (!json.ok()) {
      if (json.error().code != Errc::kNotFound)
        out_.add({file.string(), {}, "", json.error().detail, "a readable file", ""});
      return;
    }
    CostInputsContext context{out.cost_model, out.infrastructure_retries, names_known, {}, {}};
    for (const Contract& c : out.contracts) context.tasks.push_back(c.id);
    for (const Method& m : out.methods) context.methods.push_back(m.name);
    out.cost_inputs = parse_cost_inputs(*json, file.string(), context, out_);
  }

  fs::path folder_;
  Diagnostics& out_;
  std::set<std::string> seen_;
};
}  // namespace

Result<Campaign> load_campaign(const fs::path& folder, Diagnostics& out) {
  return Loader(folder, out).load();
}
}  // namespace proctor
