#pragma once
// GatewaySession: the way of one attempt's agent to a model.  A Unix socket in a folder of its own,
// which the agent's sandbox shows read-only at kGatewayAt and reaches as http://127.0.0.1:8710;
// what is asked there with the run's token is judged, reserved, forwarded with the operator's key,
// and charged.  Its clients are foreign code: heads, bodies, connections, time and memory are
// bounded, and nothing that a client does ends more than its own connection.
//
// One thread that accepts and one for each connection, from open() to close(): a call waits for its
// meter, whose book waits for a disk, and for its provider, and none of them may wait for another's
// (docs/decisions/064).  The hooks are called on these threads, several at a time.
// Errors: kUnavailable, the socket cannot be had.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/models_file.h"
#include "common/score/outcome.h"
#include "common/trace/model_calls.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/provider_connection.h"
#include "worker/gateway/redactor.h"

namespace proctor {
inline constexpr const char* kGatewayAt = "/proctor/gateway";
inline constexpr const char* kGatewayPort = "8710";

class CassettePlayer;

struct GatewayBounds {
  std::size_t connections = 64;  // at a time; others wait
  std::size_t calls = 16;        // under way; others wait
  std::size_t waiting = 64;      // one more is refused at once
  std::size_t body = std::size_t{32} << 20;
  std::uint64_t memory = std::uint64_t{128} << 20;  // of bodies under way
  std::chrono::milliseconds head{20'000}, body_time{120'000}, keep_alive{75'000};
  std::chrono::milliseconds wait{60'000};         // for money, rates, room
  std::chrono::milliseconds client_idle{60'000};  // takes no byte
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds silence{15'000};  // of a stream, until a comment is sent
  std::chrono::milliseconds drain{30'000};    // of calls under way when the agent has ended
};

// A workspace as it looks while its agent works in it.
struct WorkspaceLook {
  std::string digest;  // of names, sizes, modes and times
  std::uint64_t files = 0, bytes = 0;
};

using GatewayOperation = std::variant<MeterFit, MeterCharge, MeterRelease>;

struct GatewayHooks {
  std::function<Result<MeterAnswer>(const GatewayOperation&)> meter;
  // May be empty.  Waits until what was granted counts; the call is made after that.
  std::function<void()> cover{};
  std::function<std::string()> status;  // of the meter, one line
  std::function<void(const CallCounts&)> count;
  // An event of the run's trace, of the agent's doing or of ours; its seq.
  enum class By { kAgent, kHarness };
  std::function<std::uint64_t(std::string_view type, By by, const Json& payload)> note;
  std::function<void(std::uint64_t evidence)> cap_reached;
  // Keeps what was said; false: there is no room for it, only its digest is told.
  std::function<bool(const std::string& digest, std::string_view bytes)> keep;
  // May be empty.  An answer as it may be kept, behind the event of its call.
  std::function<void(std::uint64_t call, std::string_view answer)> answered{};
  // All three may be empty.  A breaker or a bill has ended the run, and the event that says so; for
  // breakers the agent's workspace, nothing where it cannot be looked at, and the agent's own
  // clock, which stands still while the agent does.
  std::function<void(std::string_view cap, const std::string& reason, std::uint64_t evidence)>
      stop{};
  std::function<std::optional<WorkspaceLook>()> look{};
  std::function<std::chrono::milliseconds()> now{};
};

struct GatewayOptions {
  MethodGateway method;
  ModelsFile models;  // has each model of the method
  Secret token;
  std::string ids;  // begins every id at the meter, another in every life of the worker
  GatewayBounds bounds{};
  // For everything that is told or kept, beside the run's token; may be null.
  std::shared_ptr<const Redactor> redactor{};
  // Answer instead of a provider: by the `cassette` of a model.
  std::map<std::string, std::shared_ptr<CassettePlayer>> players{};
  // Answers in place of a provider where a model has a `program`.  A call that it made and that has
  // no answer has the status 0, and says why in its place; an error: it made none.
  std::function<Result<CassetteCall>(const ModelAccess& access, std::string_view body,
                                     const std::function<bool()>& stop)>
      program{};
  bool earlier_calls = false;  // an earlier life of this worker served the same agent
};

class GatewaySession {
 public:
  // Makes `dir`/socket; `dir` exists and has none.  `pool` outlives the session.
  static Result<std::unique_ptr<GatewaySession>> open(const fs::path& dir, GatewayOptions options,
                                                      GatewayHooks hooks, ProviderPool& pool);
  GatewaySession(const GatewaySession&) = delete;
  GatewaySession& operator=(const GatewaySession&) = delete;
  ~GatewaySession();  // close()

  // Takes no more requests, waits for the calls under way, cuts off what is left then, and notes
  // the sums.  Every call that was granted is settled when it returns.  Once; any thread but its
  // own.
  void close();
  // An event of tools that the worker itself runs for the agent: told like those of its calls,
  // without what is struck out, and heard by its circuit breakers.  Any thread; before close().
  struct Heard {
    std::uint64_t seq = 0;
    std::string suspended{};  // why nothing is to be written for now; empty: it may
  };
  Heard tell(std::string_view type, GatewayHooks::By by, const Json& payload);
  // Whether the model could be had, once it is closed.
  ModelLack lack() const;

  struct Shared;  // what the connections share; internal to this room

 private:
  struct Impl;
  explicit GatewaySession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "prk1_" and 43 characters of 32 random bytes.
std::string new_gateway_token();
}  // namespace proctor
