#pragma once
// Names of things that cross room boundaries, and secrets as a type.
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/fields.h"
#include "common/base/limits.h"

namespace proctor {
// Secret: text with no stream, no formatter and no codec.  Reading it is a word one can grep for.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

// One type per idea, so that a run never meets a worker.

// Position of a run in the frozen plan, 0-based: the run's identity inside one campaign.
using RunId = Strong<struct RunIdTag, std::uint32_t>;
// Which try of the run, from 1.  It is the fencing token of everything the try does.
using AttemptNo = Strong<struct AttemptNoTag, std::uint32_t>;
// A worker's chosen name, unique in a campaign while it is connected.
using WorkerId = Strong<struct WorkerIdTag, std::string>;
// Which life of the coordinator; grows by one at each start and is durable before it is used.
using Epoch = Strong<struct EpochTag, std::uint64_t>;
// Random number of one worker process: two lives of one name differ in it.
using BootId = Strong<struct BootIdTag, std::uint64_t>;

// One try of one run.
struct AttemptId {
  RunId run;
  AttemptNo no;
  friend bool operator==(const AttemptId&, const AttemptId&) = default;
  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

void fields(auto& v, Is<AttemptId> auto& id) {
  v("run", id.run, {.most = limits::kPlanRows - 1});
  v("no", id.no);
  v.require(id.no.raw() != 0, "no", "attempts count from 1");
}

// "17.2": run 17, second attempt.  Used as the id of its reservation, in labels and in logs.
inline std::string to_string(const AttemptId& id) {
  return std::to_string(id.run.raw()) + "." + std::to_string(id.no.raw());
}
}  // namespace proctor

template <>
struct std::hash<proctor::AttemptId> {
  std::size_t operator()(const proctor::AttemptId& id) const {
    return std::hash<std::uint64_t>{}((std::uint64_t{id.run.raw()} << 32) | id.no.raw());
  }
};

namespace proctor {
// Names that a worker may have.  They become labels, names of files and words on terminals, and a
// key of an allow-list is compared with them: so they are ids, not text.

// For messages: "a worker's name is ...".
inline constexpr std::string_view kWorkerNameRule =
    "1 to 100 letters, digits, '.', '_' and '-', beginning with a letter or a digit";

// Is it 1 to limits::kNameBytes of ASCII letters, digits, '.', '_' and '-', the first a letter or a
// digit?  Any thread.
bool is_worker_name(std::string_view text);
}  // namespace proctor
