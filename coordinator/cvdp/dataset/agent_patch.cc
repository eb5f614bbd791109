#include "coordinator/cvdp/dataset/agent_patch.h"

#include <algorithm>
#include <array>
#include <vector>

#include "coordinator/cvdp/pycompat/python_diff.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {

constexpr std::array<std::string_view, 4> kFolders = {"docs/", "rundir/", "rtl/", "verif/"};

// How many bytes from `at` on are one character; 0: none, and `bad` says how many bytes count as
// one that is wrong (Unicode's "maximal subpart").
std::size_t character(std::string_view bytes, std::size_t at, std::size_t& bad) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(at);
  bad = 1;
  if (first < 0x80) return 1;
  if (first < 0xC2 || 0xF4 < first) return 0;
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    unsigned low = 0x80, high = 0xBF;
    if (i == 1 && first == 0xE0) low = 0xA0;
    if (i == 1 && first == 0xED) high = 0x9F;  // surrogates
    if (i == 1 && first == 0xF0) low = 0x90;
    if (i == 1 && first == 0xF4) high = 0x8F;
    if (bytes.size() <= at + i || byte(at + i) < low || high < byte(at + i)) {
      bad = i;
      return 0;
    }
  }
  return size;
}

void add_lines(std::string& out, char sign, const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines) {
    out += sign;
    out += line;
    out += '\n';
  }
}

Status add(std::string& out, const AgentChange& change) {
  const std::string before = text_of_bytes(change.before.value_or(""));
  const std::string after = text_of_bytes(change.after.value_or(""));
  const auto old_lines = split_lines(before), new_lines = split_lines(after);
  if (!change.before) {
    out += "--- /dev/null\n+++ b/" + change.path + "\n@@ -0,0 +1," +
           std::to_string(new_lines.size()) + " @@\n";
    add_lines(out, '+', new_lines);
  } else if (!change.after) {
    out += "--- a/" + change.path + "\n+++ /dev/null\n@@ -1," + std::to_string(old_lines.size()) +
           " +0,0 @@\n";
    add_lines(out, '-', old_lines);
  } else {
    if (before == after) return ok_status();
    PROCTOR_TRY(const std::string diff, unified_diff(old_lines, new_lines, change.path));
    out += diff;
    if (!diff.empty()) out += '\n';
  }
  out += '\n';
  return ok_status();
}

}  // namespace

std::string text_of_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t bad = 0;
    if (bytes[at] == '\r') {
      out += '\n';
      at += at + 1 < bytes.size() && bytes[at + 1] == '\n' ? 2U : 1U;
    } else if (const std::size_t size = character(bytes, at, bad); size != 0) {
      out += bytes.substr(at, size);
      at += size;
    } else {
      out += "\xEF\xBF\xBD";
      at += bad;
    }
  }
  return out;
}

Result<std::string> agent_changes(std::span<const AgentChange> changes) {
  std::vector<const AgentChange*> sorted;
  for (const AgentChange& change : changes) sorted.push_back(&change);
  std::ranges::sort(sorted, {}, [](const AgentChange* c) { return c->path; });
  std::string out;
  for (const std::string_view folder : kFolders)
    for (const AgentChange* change : sorted)
      if (change->path.starts_with(folder)) PROCTOR_CHECK_OK(add(out, *change));
  if (!out.empty()) out.pop_back();  // lines joined, the last one empty
  return out;
}

}  // namespace proctor::cvdp
