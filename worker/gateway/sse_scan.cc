#include "worker/gateway/sse_scan.h"

#include <utility>

namespace proctor {

void SseScan::end_line(std::vector<SseEvent>& out) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string_view line = line_;
  if (std::exchange(first_, false) && line.starts_with(kMark)) line.remove_prefix(kMark.size());
  if (line.empty()) {
    out.push_back(std::exchange(event_, {}));
    has_data_ = false;
  } else if (const std::size_t colon = line.find(':'); colon != 0) {
    const std::string_view field = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") event_.name = value;
    if (field == "data") {
      if (std::exchange(has_data_, true)) event_.data += '\n';
      event_.data += value;
    }
  }
  line_.clear();
}

Result<std::vector<SseEvent>> SseScan::feed(std::string_view bytes) {
  std::vector<SseEvent> out;
  for (const char c : bytes) {
    if (std::exchange(after_cr_, false) && c == '\n') {
      // Of the event that the carriage return has ended, where that is still here.
      (event_.bytes.empty() && !out.empty() ? out.back() : event_).bytes += c;
      continue;
    }
    event_.bytes += c;
    if (kEventBytes < event_.bytes.size())
      return Error{Errc::kExhausted, "an event of more than 16 MiB"};
    if (c == '\n' || c == '\r') {
      after_cr_ = c == '\r';
      end_line(out);
    } else {
      line_ += c;
    }
  }
  return out;
}

}  // namespace proctor
