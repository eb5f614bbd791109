#pragma once
// MD5 (RFC 1321), for upstream's names of networks and mirrors only: no security rests on it.
// Pure; any thread; never fails.
#include <string>
#include <string_view>

namespace proctor::cvdp {

std::string md5_hex(std::string_view bytes);

}  // namespace proctor::cvdp
