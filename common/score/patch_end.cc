#include "common/score/patch_end.h"

#include <algorithm>
#include <array>

namespace proctor {
namespace {

constexpr std::string_view kBegin = "; patch: ";
constexpr std::array<std::string_view, 4> kRungs = {"", "exact", "whitespace", "three_way"};

std::string conflict_words(const std::vector<std::string>& conflicts) {
  std::string out = "conflict_markers (" + conflicts.front();
  if (1 < conflicts.size()) out += " and " + std::to_string(conflicts.size() - 1) + " more";
  return out + ")";
}

}  // namespace

std::string_view worse_rung(std::string_view a, std::string_view b) {
  const auto place = [](std::string_view rung) { return std::ranges::find(kRungs, rung); };
  return place(a) < place(b) ? b : a;
}

std::string patch_words(const PatchEnd& end) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : ", ") + words; };
  if (!end.refused.empty()) {
    add("refused (" + end.refused + ")");
  } else if (end.rung == "whitespace" || end.rung == "three_way") {
    add(end.rung);
  }
  if (!end.conflicts.empty()) add(conflict_words(end.conflicts));
  return out.empty() ? out : std::string(kBegin) + out;
}

std::string patch_word_in(std::string_view rationale) {
  // The first: what a stranger can name stands behind it, in the brackets.
  const std::size_t at = rationale.find(kBegin);
  if (at == std::string_view::npos) return "";
  rationale.remove_prefix(at + kBegin.size());
  std::string_view word = rationale.substr(0, rationale.find(" ("));
  const bool plain = std::ranges::all_of(
      word, [](char c) { return ('a' <= c && c <= 'z') || c == '_' || c == ',' || c == ' '; });
  return plain ? std::string(word) : "";
}

}  // namespace proctor
