#include "worker/model/call_rules.h"

#include <algorithm>
#include <charconv>

#include "common/cvdp/single_shot.h"

namespace proctor {

std::chrono::milliseconds wait_before_next(std::uint32_t failures,
                                           std::chrono::milliseconds backoff,
                                           std::chrono::milliseconds retry_after) {
  std::chrono::milliseconds wait = std::min(backoff, kModelWaitMost);
  for (std::uint32_t i = 1; i < failures && wait < kModelWaitMost; ++i) wait *= 2;
  return std::min(std::max(wait, retry_after), kModelWaitMost);
}

std::uint64_t input_ceiling(const ModelRequest& request) {
  return cvdp::prompt_ceiling(request.system, request.user);
}

std::chrono::milliseconds parse_retry_after(std::string_view value) {
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  std::uint32_t seconds = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (read.ec != std::errc()) return std::chrono::milliseconds(0);
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), kModelWaitMost);
}

std::string too_large() {
  return "the answer is larger than " + std::to_string(kModelReplyBytes >> 20) + " MiB";
}

void strike_out(std::string& text, std::string_view secret) {
  if (secret.empty()) return;
  for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3))
    text.replace(at, secret.size(), "***");
}

}  // namespace proctor
