#pragma once
// Events of a stream (text/event-stream), as they come, in pieces of any size.  Pure; any thread.
// Source: WHATWG HTML 9.2.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor {

struct SseEvent {
  std::string name;   // empty: none was said
  std::string data;   // lines joined by '\n'
  std::string bytes;  // all of it, as it came, with the blank line that ends it
};

class SseScan {
 public:
  static constexpr std::size_t kEventBytes = std::size_t{16} << 20;
  // The events that are whole now.  kExhausted: one that is larger than kEventBytes.
  Result<std::vector<SseEvent>> feed(std::string_view bytes);
  // Nothing of an event has come that is not whole: a line of ours may stand here.
  bool between() const { return event_.bytes.empty(); }
  std::string rest() const { return event_.bytes; }

 private:
  void end_line(std::vector<SseEvent>& out);
  SseEvent event_;
  std::string line_;
  bool first_ = true;      // nothing has come yet: a byte order mark may
  bool after_cr_ = false;  // a line feed now belongs to the line before
  bool has_data_ = false;
};

}  // namespace proctor
