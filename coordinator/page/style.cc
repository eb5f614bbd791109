#include "coordinator/page/style.h"

#include "common/base/digest.h"

namespace proctor::page {
namespace {

std::string base64(const Digest& digest) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const std::uint8_t byte : digest.bytes()) {
    bits = bits << 8U | byte;
    for (held += 8; 6 <= held; held -= 6) out += kLetters[bits >> (held - 6) & 63U];
  }
  if (0 < held) out += kLetters[bits << (6 - held) & 63U];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

}  // namespace

std::string sheet_digest() {
  return "sha256-" + base64(sha256(kSheet));
}

}  // namespace proctor::page
