#pragma once
// Reading a provider's answer off its connection: bounded, by deadlines, whatever it sends.
// Blocking; one thread.  Internal to this room.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "worker/gateway/http_gate.h"
#include "worker/gateway/provider_connection.h"

namespace proctor {

// A whole answer has no more, whoever reads it.
inline constexpr std::size_t kAnswerBytes = std::size_t{64} << 20;

class ProviderAnswer {
 public:
  ProviderAnswer(ProviderConnection& connection, int stop) : connection_(connection), stop_(stop) {}

  // False: no answer; why() says so.
  bool read_head(SteadyClock::time_point until);
  const AnswerHead& head() const { return head_; }

  enum class More { kBytes, kWhole, kBroken, kTime };
  // The next bytes of its body, without framing, appended to `out`.
  More read_body(std::string& out, SteadyClock::time_point until);
  // All of the rest; false: broken, over time, or more than `most`.
  bool read_all(std::string& out, std::size_t most, SteadyClock::time_point until);
  // The connection may be used again.
  bool is_reusable() const { return whole_ && !head_.last && bytes_.empty(); }
  const std::string& why() const { return why_; }

 private:
  bool fill(SteadyClock::time_point until, More& how);
  More broken(std::string why);
  ProviderConnection& connection_;
  int stop_;
  AnswerHead head_;
  ChunkReader chunks_;
  std::string bytes_;  // read and not yet used
  std::uint64_t left_ = 0;
  bool whole_ = false;
  std::string why_;
};

// How long whoever answers so wants to be left alone; nothing: it does not say, or by a date.
std::optional<std::chrono::milliseconds> retry_after(const HttpFields& fields);

}  // namespace proctor
