#include "worker/shell/host_facts.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::size_t kSmallFile = std::size_t{64} << 10;
constexpr std::size_t kPackageList = std::size_t{64} << 20;
constexpr std::size_t kVersionBytes = 100;

// What installs, builds or runs tests; sorted.
constexpr std::array<std::string_view, 26> kTold = {
    "bash",  "binutils", "bundler",     "cargo", "clang",       "cmake",     "composer",
    "dash",  "dpkg",     "g++",         "gcc",   "git",         "golang-go", "gradle",
    "libc6", "make",     "maven",       "meson", "ninja-build", "nodejs",    "npm",
    "perl",  "python3",  "python3-pip", "ruby",  "rustc"};
static_assert(std::ranges::is_sorted(kTold));

// The rest of the line that begins with `key`.
std::string_view line_after(std::string_view text, std::string_view key) {
  while (!text.empty())
    if (std::string_view line = take_until(text, '\n'); take_word(line, key)) return line;
  return {};
}

// Adding, removing or replacing something in a folder moves its time.
std::string stamp_of(const fs::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return path.string() + " absent";
  return path.string() + " " + std::to_string(st.st_ino) + " " + std::to_string(st.st_size) + " " +
         std::to_string(st.st_mtim.tv_sec) + "." + std::to_string(st.st_mtim.tv_nsec);
}

std::string first_line(std::string_view text) {
  return printable(text.substr(0, text.find('\n')), kVersionBytes);
}
}  // namespace

std::string kernel_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string out;
  file >> out;
  return out.empty() ? "unknown" : out;
}

HostFacts host_facts() {
  HostFacts facts;
  struct utsname host {};
  ::uname(&host);
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  const auto gib =
      (static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes)) >> 30;
  facts.cpu_class = std::string(host.machine) + ", " + std::to_string(cores) + " cores";
  facts.memory_class = std::to_string(gib) + " GiB";
  facts.kernel = std::string(host.sysname) + " " + host.release;
  facts.os = "unknown";
  const Result<std::string> release = read_file("/etc/os-release", kSmallFile);
  if (!release.ok()) return facts;
  std::string_view name = line_after(*release, "PRETTY_NAME=");
  if (2 <= name.size() && name.front() == '"') name = name.substr(1, name.size() - 2);
  if (!name.empty()) facts.os = name;
  return facts;
}

std::map<std::string, std::string> packages_of(std::string_view dpkg_status) {
  std::map<std::string, std::string> out;
  // Name and version of every package, in the file's order, which is that of names.
  Sha256 all;
  bool any = false;
  for (std::size_t at = 0; at < dpkg_status.size();) {
    const std::size_t end = std::min(dpkg_status.find("\n\n", at), dpkg_status.size());
    const std::string_view entry = dpkg_status.substr(at, end - at);
    at = end + 2;
    const std::string_view name = line_after(entry, "Package: ");
    const std::string_view version = line_after(entry, "Version: ");
    const std::string_view status = line_after(entry, "Status: ");
    if (name.empty() || version.empty() || !status.ends_with(" installed")) continue;
    any = true;
    all.update(name);
    all.update(" ");
    all.update(version);
    all.update("\n");
    if (std::ranges::binary_search(kTold, name))
      out.insert_or_assign(std::string(name), printable(version, kVersionBytes));
  }
  if (any) {
    std::string& dpkg = out["dpkg"];
    dpkg += (dpkg.empty() ? "" : ", ") + ("all packages sha256:" + all.finish().hex());
  }
  return out;
}

const std::map<std::string, std::string>& host_packages() {
  static const std::map<std::string, std::string> packages = [] {
    const Result<std::string> status = read_file("/var/lib/dpkg/status", kPackageList);
    return status.ok() ? packages_of(*status) : std::map<std::string, std::string>{};
  }();
  return packages;
}

std::vector<std::string> shown_host(const std::vector<fs::path>& toolchains) {
  const HostFacts facts = host_facts();
  std::vector<std::string> out = {facts.os, facts.cpu_class, stamp_of("/var/lib/dpkg/status")};
  std::vector<fs::path> places = {"/usr", "/usr/local"};
  for (const fs::path& toolchain : toolchains) {
    out.push_back(toolchain.string() + " " + toolchain_version(toolchain));
    places.push_back(toolchain);
  }
  for (const fs::path& place : places) {
    out.push_back(stamp_of(place));
    std::vector<std::string> below;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error))
      if (entry.is_directory(error)) below.push_back(stamp_of(entry.path()));
    std::ranges::sort(below);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

std::string toolchain_version(const fs::path& folder) {
  if (const auto version = read_file(folder / "VERSION", kSmallFile); version.ok())
    return first_line(*version);
  if (const auto config = read_file(folder / "pyvenv.cfg", kSmallFile); config.ok()) {
    const std::string_view version = line_after(*config, "version = ");
    if (!version.empty()) return first_line(version);
  }
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return error ? std::string() : printable(real.filename().string(), kVersionBytes);
}
}  // namespace proctor
