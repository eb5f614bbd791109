#include "coordinator/shell/allow_files.h"

#include <sys/stat.h>

#include <algorithm>

#include "common/base/system_clock.h"

namespace proctor {
namespace {

constexpr std::size_t kAllowFilesMax = 20'000;  // of the folder: a file for each worker there is
// Two changes within the grain of a file system's clock leave the same times.
constexpr std::int64_t kGrainNs = 1'000'000'000;

std::int64_t ns_of(const timespec& t) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return static_cast<std::int64_t>(t.tv_sec) * kSecond + t.tv_nsec;
}

bool is_settled(std::int64_t changed_ns) {
  constexpr std::int64_t kMs = 1'000'000;
  return changed_ns + kGrainNs < wall_now().raw() * kMs;
}

}  // namespace

// The list itself comes first, whatever the others are called.
std::vector<fs::path> AllowFiles::paths() const {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator it(folder_.allow_folder(), ec), end;
       !ec && it != end && out.size() < kAllowFilesMax; it.increment(ec))
    if (it->path().extension() == ".allow") out.push_back(it->path());
  std::ranges::sort(out);
  if (fs::exists(folder_.allow_list(), ec)) out.insert(out.begin(), folder_.allow_list());
  return out;
}

std::optional<AllowFiles::Seen> AllowFiles::stat_of(const fs::path& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return std::nullopt;
  return Seen{static_cast<std::uint64_t>(st.st_size), st.st_ino, ns_of(st.st_mtim),
              ns_of(st.st_ctim)};
}

Result<wire::AllowList> AllowFiles::read() {
  std::error_code ec;
  if (!fs::exists(folder_.allow_folder(), ec) && !fs::exists(folder_.allow_list(), ec))
    return Error{Errc::kNotFound, folder_.allow_list().string() + ": no such file"};
  Change first = look();
  if (!first.mistakes.empty()) return Error{Errc::kInvalid, first.mistakes.front()};
  return std::move(first.list).value_or(wire::AllowList());
}

AllowFiles::Change AllowFiles::look() {
  Change out;
  std::map<fs::path, File> now;
  std::map<fs::path, std::string> mistakes;
  bool changed = false;
  for (const fs::path& path : paths()) {
    const std::optional<Seen> seen = stat_of(path);
    if (!seen) continue;  // it went meanwhile
    const auto before = files_.find(path);
    if (before != files_.end() && before->second.seen == seen) {
      if (const auto told = told_.find(path); told != told_.end()) mistakes.insert(*told);
      now.insert(std::move(*before));
      continue;
    }
    File file;
    if (is_settled(std::max(seen->modified_ns, seen->changed_ns))) file.seen = seen;
    Result<wire::AllowList> list = wire::load_allow_list(path);
    if (list.ok()) {
      file.list = std::move(list).value();
    } else {
      mistakes.emplace(path, list.error().detail);
      if (before != files_.end()) file.list = before->second.list;
    }
    changed = changed || before == files_.end() || !(file.list == before->second.list);
    now.emplace(path, std::move(file));
  }
  changed = changed || now.size() != files_.size();
  files_ = std::move(now);
  for (const auto& [path, what] : mistakes) {
    const auto told = told_.find(path);
    if (told == told_.end() || told->second != what) out.mistakes.push_back(what);
  }
  told_ = std::move(mistakes);
  if (changed) out.list = merged(out.mistakes);
  return out;
}

wire::AllowList AllowFiles::merged(std::vector<std::string>& mistakes) const {
  wire::AllowList out;
  const auto take = [&](const fs::path& path, const wire::AllowList& list) {
    for (const auto& [key, name] : list.names()) {
      if (out.name_of(key) == name) continue;  // said twice
      if (const Status added = out.add(key, name); !added.ok())
        mistakes.push_back(path.string() + ": the line of " + name +
                           " does not count: " + added.error().detail);
    }
  };
  if (const auto it = files_.find(folder_.allow_list()); it != files_.end())
    take(it->first, it->second.list);
  for (const auto& [path, file] : files_)
    if (path != folder_.allow_list()) take(path, file.list);
  return out;
}

}  // namespace proctor
