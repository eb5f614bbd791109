#pragma once
// The most that a call can come to, in tokens, before anybody is asked.  Pure.  DeltaRule and
// DeltaTrust belong to one thread each; all else is for any.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/contract/campaign.h"
#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/json_spans.h"

namespace proctor {
// Around a message, a tool, ... a provider puts at most so many tokens.
inline constexpr std::uint64_t kTokensPerItem = 16;

struct TokenCeiling {
  std::uint64_t input = 0;
  std::uint64_t asked = 0;  // of output, in each sample; 0: the call has none
  std::uint64_t least = 0;  // a limit below it would be of no use
};

// Every token of a byte-level tokenizer stands for at least one byte of text, and the JSON form of
// a text is never shorter than the text; providers print tools anew, and put words of their own
// around a request.
TokenCeiling ceiling_of(ModelApi api, const BodyPeek& peek, std::uint64_t body_bytes,
                        const GatewayModel& model, const ModelAccess& access);

// The request of such a call to the run's meter, under this id.
MeterFit fit_of(std::string id, const GatewayModel& model, const BodyPeek& peek,
                const TokenCeiling& ceiling);

// Says the limit that was granted to the provider; nullopt: it says so already.
std::optional<Splice> limit_edit(ModelApi api, const BodyPeek& peek, const ModelAccess& access,
                                 std::uint64_t limit);

// How many tokens of input a call can have at most, by what earlier calls of its run had: a client
// sends its whole conversation with every call, and its provider has counted most of it before.

// A message, an input, a tool, ...: what it is and what it may cost.
struct ItemMark {
  Digest what;                 // its bytes without the marks of caches, which clients move
  std::uint64_t tokens = 0;    // at most, if no call before had it
  std::uint64_t unmarked = 0;  // bytes that `what` leaves out: its tokens if a call before had it
  bool thinks = false;         // providers count reasoning in some turns and not in others
  friend auto operator<=>(const ItemMark&, const ItemMark&) = default;
};
struct CallShape {
  ModelApi api = ModelApi::kChat;
  Digest settings;              // all members but items, limits and names of clients
  std::vector<ItemMark> items;  // ascending
};
// nullopt: the rule says nothing of such a call.  `peek` is of `body`.
std::optional<CallShape> shape_of(ModelApi api, std::string_view body, const BodyPeek& peek,
                                  const ModelAccess& access);

// The calls of one run.  Items are delimited by tokens of their own, so that a request has at most
// those of a call before, of its answer, and of the items that this call did not have.
class DeltaRule {
 public:
  // nullopt: no call before bounds it.
  std::optional<std::uint64_t> bound(const CallShape& shape) const;
  // A call was charged by its usage.
  void settled(CallShape shape, const Amount& actual);

 private:
  static constexpr std::size_t kCalls = 64;
  struct Seen {
    CallShape shape;
    std::uint64_t tokens = 0;
  };
  std::deque<Seen> seen_;
};

// Whether the rule holds of a model, by all calls of it that could be bounded: no provider says
// that it counts so.
class DeltaTrust {
 public:
  bool holds() const { return need_ <= confirmed_; }
  void seen(std::uint64_t bound, std::uint64_t actual);

 private:
  static constexpr std::uint64_t kFirst = 8, kAgain = 4, kMost = 512;
  std::uint64_t need_ = kFirst, confirmed_ = 0;
};
}  // namespace proctor
