#include "common/cvdp/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace proctor::cvdp {
namespace {

using State = std::array<std::uint32_t, 4>;

std::array<std::uint32_t, 64> sines() {
  std::array<std::uint32_t, 64> out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint32_t>(
        std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  return out;
}

void add_block(State& state, std::string_view block) {
  static const auto kSines = sines();
  static constexpr std::array<std::array<int, 4>, 4> kTurns = {
      {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i)
    words[i / 4] |= std::uint32_t{static_cast<unsigned char>(block[i])} << (8 * (i % 4));
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t round = i / 16;
    const std::uint32_t f = round == 0   ? (b & c) | (~b & d)
                            : round == 1 ? (d & b) | (~d & c)
                            : round == 2 ? b ^ c ^ d
                                         : c ^ (b | ~d);
    static constexpr std::array<std::size_t, 4> kStep = {1, 5, 3, 7};
    static constexpr std::array<std::size_t, 4> kFrom = {0, 1, 5, 0};
    const std::size_t word = (kFrom[round] + kStep[round] * i) % 16;
    const std::uint32_t sum = a + f + kSines[i] + words[word];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kTurns[round][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::string md5_hex(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (unsigned i = 0; i < 8; ++i)
    padded += static_cast<char>((std::uint64_t{bytes.size()} * 8 >> (8 * i)) & 0xFFU);
  State state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += 64)
    add_block(state, std::string_view(padded).substr(at, 64));
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const std::uint32_t word : state) {
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t byte = (word >> (8 * i)) & 0xFFU;
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

}  // namespace proctor::cvdp
