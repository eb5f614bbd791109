// What comes over the control socket, from either side: what is understood is written again as a
// line that means the same.
#include "coordinator/shell/control_protocol.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::control_line {

template <class T>
void check(Result<T> (*parse)(std::string_view), std::string_view line) {
  const Result<T> read = parse(line);
  if (!read.ok()) {
    PROCTOR_ASSERT(!read.error().detail.empty());
    return;
  }
  std::string written = encode(*read);
  PROCTOR_ASSERT(written.find('\n') == written.size() - 1);
  PROCTOR_ASSERT(encode(must(parse(std::string_view(written).substr(0, written.size() - 1)))) ==
                 written);
}

void target(std::string_view bytes) {
  check<ControlRequest>(parse_control_request, bytes);
  check<ControlAnswer>(parse_control_answer, bytes);
}

}  // namespace proctor::fuzz::control_line
