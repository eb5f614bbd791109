#pragma once
// Connections to providers: plain to this machine, TLS to everywhere else, kept for the next call.
// Where they lead is the models file's word alone; no redirect and no name of an agent's is
// followed.  Blocking, with deadlines and a descriptor that ends everything; a connection is used
// by one thread at a time, the pool by any. Fails with kUnavailable; nothing of a request is out
// then.
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/contract/models_file.h"
#include "worker/gateway/delta_rule.h"
#include "worker/gateway/provider_streak.h"
#include "worker/gateway/wire_io.h"

namespace proctor {

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

  // Of ProviderPass alone: what the calls of all runs know together of whether a provider answers.
  ProviderStreak::May may_call(const ModelAccess& access, ProviderStreak::Run run);
  void call_ended(const ModelAccess& access, ProviderStreak::Run run, ProviderStreak::End end,
                  bool probe);
  // ... and of whether it has room (provider_streak.h).
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

}  // namespace proctor
