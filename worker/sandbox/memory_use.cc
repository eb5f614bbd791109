#include "worker/sandbox/memory_use.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "common/base/files.h"
#include "common/base/parse.h"

namespace proctor {
namespace {

constexpr std::size_t kProcFile = 8192;
constexpr std::uint64_t kKiB = 1024;

std::uint64_t next_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  take_number(text, value);
  return value;
}

// statm: pages in all, resident, of these shared with a file or with others.
std::uint64_t own_bytes(std::string_view statm) {
  (void)next_number(statm);
  const std::uint64_t resident = next_number(statm), shared = next_number(statm);
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (resident - std::min(resident, shared)) * page;
}

}  // namespace

std::uint64_t proportional_bytes(std::string_view smaps_rollup) {
  std::uint64_t out = 0;
  for (const std::string_view key : {"\nPss:", "\nSwapPss:"}) {
    const std::size_t at = smaps_rollup.find(key);
    if (at == std::string_view::npos) continue;
    std::string_view rest = smaps_rollup.substr(at + key.size());
    out += next_number(rest) * kKiB;
  }
  return out;
}

std::optional<std::uint64_t> memory_of(const std::vector<pid_t>& processes) {
  std::uint64_t out = 0;
  for (const pid_t pid : processes) {
    const fs::path dir = "/proc/" + std::to_string(pid);
    const auto rollup = read_file(dir / "smaps_rollup", kProcFile);
    if (rollup.ok()) {
      out += proportional_bytes(*rollup);
      continue;
    }
    const auto statm = read_file(dir / "statm", kProcFile);
    if (statm.ok()) out += own_bytes(*statm);
    if (!statm.ok() && statm.error().code == Errc::kExhausted) return std::nullopt;
  }
  return out;
}

}  // namespace proctor
