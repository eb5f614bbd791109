#include "common/base/ids.h"

#include <algorithm>

#include "common/base/limits.h"

namespace proctor {
namespace {
bool is_letter_or_digit(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
}
}  // namespace

bool is_worker_name(std::string_view text) {
  static_assert(limits::kNameBytes == 100);  // kWorkerNameRule says so
  return !text.empty() && text.size() <= limits::kNameBytes && is_letter_or_digit(text.front()) &&
         std::ranges::all_of(text, [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
         });
}
}  // namespace proctor
