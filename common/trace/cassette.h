#pragma once
// A recording of calls of models: what was asked and what came back, so that a campaign can run
// again without a provider.  One file of JSON lines, each piece of a text once:
//
//   {"proctor_cassette":1,"calls":2}
//   {"piece":"..."}                                            pieces are numbered from 0
//   {"call":1,"run":"t/m/r1","route":"chat","model":"big","status":200,"streamed":false,
//    "request":[0,2],"answer":[1],"digest":"SHA-256 of request and answer"}
//
// Pure but for load; any thread.  Errors: kInvalid with the line; kExhausted: too large.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

struct CassetteCall {
  std::string run;                  // whose it was
  std::string route;                // to_string(ModelApi)
  std::string model;                // as the run called it
  int status = 0;                   // of the provider
  bool streamed = false;            // the answer is a stream of events
  std::vector<std::string> pieces;  // of the request, in order
  std::string answer;
  std::string request() const;
  friend bool operator==(const CassetteCall&, const CassetteCall&) = default;
};

inline constexpr std::size_t kCassetteBytes = std::size_t{256} << 20;
inline constexpr std::size_t kCassetteCalls = 100'000;

// kInvalid: a text that is no UTF-8.
Result<std::string> cassette_text(const std::vector<CassetteCall>& calls);
Result<std::vector<CassetteCall>> parse_cassette(std::string_view text);
Result<std::vector<CassetteCall>> load_cassette(const fs::path& file);

// The calls of a run directory that a provider answered, and how many cannot be played again, for
// their texts were not kept or something was struck out of them.
struct RecordedCalls {
  std::vector<CassetteCall> calls;
  std::size_t left_out = 0;
};
Result<RecordedCalls> record_calls(const fs::path& run_dir, const std::string& run);

}  // namespace proctor
