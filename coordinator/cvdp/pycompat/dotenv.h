#pragma once
// A file of settings as upstream reads it, and which of them `proctor cvdp` knows: what else stands
// there (PATH, LD_PRELOAD) is nobody's.  Pure; any thread; never fails.  Source: CVDP 2.4.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace proctor::cvdp {

// KEY=VALUE a line, blanks round both dropped, one pair of matching quotes too; lines that begin
// with "#", and lines without "=", are none.  Of a key that comes twice the first counts.
std::vector<std::pair<std::string, std::string>> read_dotenv(std::string_view text);

}  // namespace proctor::cvdp
