// What a Docker Engine sends: a reply and a frame stream mean the same in whatever pieces they
// come.
#include "worker/sandbox/docker_http.h"

#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::docker_http {

constexpr std::size_t kBodyMax = 512;

// The reply and what was left over, or the error.
std::string read_reply(std::string_view bytes, std::size_t piece) {
  HttpReplyParser parser(kBodyMax);
  while (!bytes.empty() && !parser.done()) {
    const auto used = parser.feed(bytes.substr(0, piece));
    if (!used.ok()) return "! " + used.error().detail;
    PROCTOR_ASSERT(0 < *used && *used <= std::min(piece, bytes.size()));
    bytes.remove_prefix(*used);
  }
  if (const Status closed = parser.close(); !closed.ok()) return "! " + closed.error().detail;
  PROCTOR_ASSERT(parser.done());
  const HttpReply reply = parser.take();
  PROCTOR_ASSERT(reply.body.size() <= kBodyMax);
  std::string out = std::to_string(reply.status) + (parser.keeps_alive() ? " kept" : " closed");
  for (const auto& [name, value] : reply.headers) out += "\n" + name + ": " + value;
  return out + "\n\n" + reply.body + "\n" + std::string(bytes);
}

std::string read_frames(std::string_view bytes, std::size_t piece) {
  DockerFrames frames;
  std::string out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    const Status fed =
        frames.feed(bytes.substr(0, piece), [&](DockerFrames::Stream s, std::string_view payload) {
          for (const char c : payload) out += {s == DockerFrames::Stream::kStdout ? '1' : '2', c};
        });
    if (!fed.ok()) return "!";
  }
  return out + (frames.at_boundary() ? "." : "?");
}

void target(std::string_view bytes) {
  const std::size_t piece = 1 + take_byte(bytes) % 32U;
  PROCTOR_ASSERT(read_reply(bytes, piece) == read_reply(bytes, bytes.size()));
  PROCTOR_ASSERT(read_frames(bytes, piece) == read_frames(bytes, bytes.size()));
}

}  // namespace proctor::fuzz::docker_http
