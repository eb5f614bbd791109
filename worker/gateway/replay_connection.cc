#include "worker/gateway/replay_connection.h"

namespace proctor {

ReplayConnection::ReplayConnection(const CassetteCall& call) {
  bytes_ = "HTTP/1.1 " + std::to_string(call.status) + " Recorded\r\ncontent-type: ";
  bytes_ += call.streamed ? "text/event-stream" : "application/json";
  bytes_ += "\r\ncontent-length: " + std::to_string(call.answer.size()) + "\r\n\r\n";
  bytes_ += call.answer;
}

bool ReplayConnection::write(std::string_view, int, SteadyClock::time_point) {
  return true;
}

ProviderConnection::Read ReplayConnection::read(std::string& out, int, SteadyClock::time_point) {
  constexpr std::size_t kPiece = std::size_t{16} << 10;
  if (bytes_.size() <= at_) return Read::kEnd;
  out += bytes_.substr(at_, kPiece);
  at_ += kPiece;
  return Read::kBytes;
}

}  // namespace proctor
