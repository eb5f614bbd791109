#pragma once
// Providers: connections to them, whether they are worth asking and have room, and reading what
// they answer.
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/contract/call_limits.h"
#include "common/contract/models_file.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/http_gate.h"
#include "worker/network/sockets.h"

namespace proctor {
std::uint64_t micros_since(SteadyClock::time_point since);

// Has the peer of a stream socket left?
bool has_left(int fd);

// The bounds of a ProviderStreak.
struct StreakRule {
  std::uint64_t failures = 10;  // in a row
  // The time of waiting, at first and at most: it doubles with each try that fails.
  std::chrono::milliseconds first{10'000}, most{300'000};
  std::chrono::milliseconds look_again{250};  // while one of them tries
};

// Whether a provider is worth asking: after so many calls in a row that it failed, calls wait, then
// one of them tries, and its end decides for all.  It is about the provider, not a run: it ends
// none and stands in no campaign (docs/breakers.md).  A run can make a provider fail by what it
// asks, so a row of one run's calls holds back that run alone, and who tried last tries after the
// others.
// Pure; one thread.
class ProviderStreak {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Millis = std::chrono::milliseconds;
  using Rule = StreakRule;
  // Whose call it is: calls of one run have the same, of two that are there together never.
  using Run = const void*;
  explicit ProviderStreak(Rule rule = {}) : rule_(rule) {}

  // Zero: the call may be made.  `probe`: it is the one that tries, and must say how it ended.
  struct May {
    Millis wait{0};
    bool probe = false;
  };
  May may_begin(Run run, Time now);
  enum class End { kAnswered, kFailed, kUnknown };  // the last: it was not asked, or we cut it off
  void ended(Run run, End end, bool probe, Time now);

 private:
  static constexpr std::size_t kRunsKnown = 10'000;
  // Do calls of this run wait?  Not those of one that has not failed yet: others may have asked for
  // what fails, and at a real failure of the provider it costs one call of each run.
  bool holds(Run run) const {
    return open_ && (failed_.contains(run) || kRunsKnown <= failed_.size());
  }
  bool several() const { return 1 < failed_.size(); }
  const Rule rule_;
  std::uint64_t failures_ = 0;
  std::set<Run> failed_;  // whose calls failed in this row, as many as kRunsKnown
  bool open_ = false, probing_ = false;
  Run tried_ = nullptr;  // the last, in vain
  Millis pause_{0};
  Time until_{};
};

// Models whose provider had no room, and until when no call of this worker asks for them: by the
// provider's own word, or longer each time.  All workers of a campaign keep what one of them heard
// (Sync.holds); they name a model by a digest, so that no address leaves its host.  `model` is its
// URL and its name there.  Pure; one thread.
class ProviderHolds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Millis = std::chrono::milliseconds;

  // Its provider had no room, and named a time or none.
  void no_room(const std::string& model, std::optional<Millis> asked, Time now);
  // A call was answered: the next want of room is a first one.
  void answered(const std::string& model) { providers_[model].unasked = Millis(0); }
  // How long a call waits yet.  `place` in the order of the waiting calls is 0 at first and kept
  // here: they begin one after the other, within a second.
  Millis left(const std::string& model, std::uint32_t& place, Time now);

  // The holds that this worker's calls heard of; and those that others did.
  std::vector<ProviderHold> own(Time now) const;
  void take(const std::vector<ProviderHold>& of_others, Time now);
  static std::string name_of(const std::string& model);

 private:
  struct Provider {
    Millis unasked{0};         // the latest hold without a time of the provider's
    std::uint32_t places = 0;  // given since the hold began
    Time own{};                // until when, by what was heard here
    Time until{};              // ... or by others
  };
  std::map<std::string, Provider> providers_;
};

// Connections to providers: plain to this machine, TLS to everywhere else, kept for the next call.
// Where they lead is the models file's word alone; no redirect and no name of an agent's is
// followed.  Blocking, with deadlines and a descriptor that ends everything; a connection is used
// by one thread at a time, the pool by any.  Fails with kUnavailable; nothing of a request is out
// then.

// Where a provider's URL leads.
struct ProviderPlace {
  bool tls = false;
  NetHost host;
  std::uint16_t port = 0;
  std::string path;    // without '/' at its end
  std::string header;  // of Host
};
// kInvalid: no URL that the models file takes.
Result<ProviderPlace> provider_place(std::string_view url);

class ProviderConnection {
 public:
  enum class Read { kBytes, kEnd, kBroken, kTime, kStopped };
  virtual ~ProviderConnection() = default;
  // False: broken, over time or stopped.
  virtual bool write(std::string_view bytes, int stop, SteadyClock::time_point until) = 0;
  // Appends to `out` what has come, at most some 16 KiB.
  virtual Read read(std::string& out, int stop, SteadyClock::time_point until) = 0;
  // Neither closed nor with a word of its peer's waiting.
  virtual bool is_quiet() const = 0;
};

// A stream socket that is connected, without TLS.
std::unique_ptr<ProviderConnection> plain_connection(UniqueFd fd);

class ProviderPool {
 public:
  explicit ProviderPool(ProviderStreak::Rule rule = {});
  ProviderPool(const ProviderPool&) = delete;
  ProviderPool& operator=(const ProviderPool&) = delete;
  ~ProviderPool();

  // One that was kept, or a new one.
  Result<std::unique_ptr<ProviderConnection>> take(const ModelAccess& access, int stop,
                                                   SteadyClock::time_point until);
  // ... always a new one.
  Result<std::unique_ptr<ProviderConnection>> connect(const ModelAccess& access, int stop,
                                                      SteadyClock::time_point until);
  // Requires: its last answer was read whole.
  void give_back(const ModelAccess& access, std::unique_ptr<ProviderConnection> connection);

  // For ProviderPass alone: what the calls of all runs know together of whether a provider answers.
  ProviderStreak::May may_call(const ModelAccess& access, ProviderStreak::Run run);
  void call_ended(const ModelAccess& access, ProviderStreak::Run run, ProviderStreak::End end,
                  bool probe);
  // ... and of whether it has room (ProviderHolds).
  std::chrono::milliseconds held(const ModelAccess& access, std::uint32_t& place);
  void no_room(const ModelAccess& access, std::optional<std::chrono::milliseconds> asked);
  void had_room(const ModelAccess& access);
  // The holds that this worker heard of, and those that others did.
  std::vector<ProviderHold> holds() const;
  void hold(const std::vector<ProviderHold>& of_others);

  // Whether the delta rule holds of a model, by the calls of all runs.
  bool delta_holds(const ModelAccess& access) const;
  void delta_seen(const ModelAccess& access, std::uint64_t bound, std::uint64_t actual);

 private:
  struct Tls;
  struct Idle {
    std::unique_ptr<ProviderConnection> connection;
    SteadyClock::time_point since;
  };
  Result<std::shared_ptr<Tls>> tls_for(const std::string& ca_file);
  const ProviderStreak::Rule rule_;
  mutable std::mutex mutex_;
  ProviderHolds holds_;
  std::map<std::string, ProviderStreak> streaks_;            // by URL
  std::map<std::string, DeltaTrust> trusts_;                 // by URL and name there
  std::map<std::string, std::list<Idle>> idle_;              // by URL
  std::map<std::string, std::shared_ptr<Tls>> tls_by_file_;  // by file of authorities
};

// A whole answer has no more, whoever reads it.
inline constexpr std::size_t kAnswerBytes = std::size_t{64} << 20;

// Reads a provider's answer off its connection: bounded, by deadlines, whatever it sends.
// Blocking; one thread.
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
  BodyScanner body_;
  std::string bytes_;  // read and not yet used
  bool whole_ = false;
  std::string why_;
};

// How long whoever answers so wants to be left alone; nothing: it does not say, or by a date.
std::optional<std::chrono::milliseconds> retry_after(const HttpFields& fields);
}  // namespace proctor
