#pragma once
// A recorded answer as if a provider sent it, so that everything behind is what a provider's goes
// through.  One thread.  Internal to this room.
#include "common/trace/model_calls.h"
#include "worker/gateway/provider_connection.h"

namespace proctor {

class ReplayConnection final : public ProviderConnection {
 public:
  explicit ReplayConnection(const CassetteCall& call);
  bool write(std::string_view bytes, int stop, SteadyClock::time_point until) override;
  Read read(std::string& out, int stop, SteadyClock::time_point until) override;
  bool is_quiet() const override { return true; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace proctor
