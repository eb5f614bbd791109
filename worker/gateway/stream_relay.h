#pragma once
// A provider's stream on its way to the agent: each read is written on at once, a copy is read for
// what the call has used.  Where the usage was asked for by us, the agent does not see it.
// Blocking; one thread.  Internal to this room.
#include <functional>
#include <string>
#include <string_view>

#include "worker/gateway/provider_answer.h"
#include "worker/gateway/tool_calls.h"
#include "worker/gateway/usage.h"

namespace proctor {

class StreamRelay {
 public:
  struct Options {
    bool hides_usage = false;
    bool long_cache = false;
    bool unframed = false;  // the client takes no chunks: the connection's end is the end
    std::chrono::milliseconds silence, idle;
    SteadyClock::time_point total;
    std::uint64_t number = 0;  // of the call
  };
  using Say = std::function<void(std::string_view)>;
  StreamRelay(ModelApi api, Options options)
      : options_(options), facts_(api, options.long_cache), tools_(api) {}

  // Until the stream is over.  True: the answer is complete, by the stream's own last event or by a
  // reason to finish (providers of chat completions without "[DONE]"), and none said that it
  // failed.
  bool run(ProviderAnswer& answer, const Say& say);
  // The end of the framing, as the provider's; false: the connection's end is it.
  bool end(const Say& say) const;

  const StreamFacts& facts() const { return facts_; }
  // Has its agent an event of it that is no failure?
  bool says_something() const { return said_ && !facts_.failed(); }
  const StreamToolCalls& tools() const { return tools_; }
  const std::string& bytes() const { return bytes_; }  // as they came, to 16 MiB

 private:
  bool take(std::string_view bytes, const Say& say);
  void pass(std::string_view bytes, const Say& say) const;
  Options options_;
  SseScan scan_;
  StreamFacts facts_;
  StreamToolCalls tools_;
  std::string bytes_;
  bool said_ = false, ended_well_ = false;
};

}  // namespace proctor
