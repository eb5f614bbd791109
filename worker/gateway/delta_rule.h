#pragma once
// How many tokens of input a call can have at most, by what earlier calls of its run had: a client
// sends its whole conversation with every call, and its provider has counted most of it before.
// Pure; one thread.
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/body_peek.h"

namespace proctor {

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
