#include "worker/selftest/process_view.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "common/base/parse.h"

namespace proctor {
namespace {

constexpr std::array<const char*, 7> kNamespaces = {"mnt", "pid",  "net",   "ipc",
                                                    "uts", "user", "cgroup"};

// Blanks and the like stand there as \040.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t k) { return '0' <= text[k] && text[k] <= '7'; };
    if (text[i] != '\\' || text.size() < i + 4 || !octal(i + 1) || !octal(i + 2) || !octal(i + 3)) {
      out.push_back(text[i]);
      continue;
    }
    out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                    (text[i + 3] - '0')));
    i += 3;
  }
  return out;
}

}  // namespace

std::vector<MountView> parse_mountinfo(std::string_view text) {
  std::vector<MountView> out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, at, options, word, type;
    if (!(words >> id >> parent >> device >> root >> at >> options)) continue;
    while (words >> word && word != "-") {
    }
    if (!(words >> type)) continue;
    const bool writable = std::ranges::count(split(options, ','), std::string_view("ro")) == 0;
    out.push_back({device, unescaped(root), unescaped(at), type, writable});
  }
  return out;
}

std::string read_proc_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  try {
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  } catch (const std::ios_base::failure&) {
    return {};  // it ended between open and read
  }
}

Result<ProcessView> look_at_process(pid_t pid) {
  const fs::path dir = fs::path("/proc") / std::to_string(pid);
  ProcessView out;
  for (const char* name : kNamespaces) {
    std::error_code ec;
    const fs::path link = fs::read_symlink(dir / "ns" / name, ec);
    if (!ec) out.namespaces[name] = link.string();
    // A kernel without this kind of namespace has no such link.
    if (ec && ec != std::errc::no_such_file_or_directory)
      return Error{Errc::kUnavailable, "look at " + dir.string() + "/ns: " + ec.message()};
  }
  std::istringstream status(read_proc_file(dir / "status"));
  for (std::string line; std::getline(status, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    out.status[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  out.mounts = parse_mountinfo(read_proc_file(dir / "mountinfo"));
  if (out.status.empty() || out.namespaces.empty())
    return Error{Errc::kNotFound, dir.string() + " is gone"};
  if (out.mounts.empty())
    return Error{Errc::kUnavailable, dir.string() + "/mountinfo: not to be read"};
  return out;
}

}  // namespace proctor
