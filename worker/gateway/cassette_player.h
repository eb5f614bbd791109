#pragma once
// Answers the calls of one session from a recording: each recorded call once, found as the models
// file says.  A call that is not in it is a divergence, and the first place at which it differs
// from the call that was next is named.  Thread-safe.
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/contract/models_file.h"
#include "common/trace/cassette.h"

namespace proctor {

class CassettePlayer {
 public:
  // Of several recorded runs: the calls of `run`, if it is among them, else all in their order.
  CassettePlayer(std::vector<CassetteCall> calls, const std::string& run, CassetteMatch match);

  struct Hit {
    std::uint64_t number = 0;  // from 1, in the recording
    const CassetteCall* call = nullptr;
  };
  struct Miss {
    std::uint64_t expected = 0;  // the call that was next; 0: none was left
    std::string pointer, ours, theirs;
    std::string text;  // for people
  };
  std::variant<Hit, Miss> take(ModelApi api, std::string_view body);
  // Calls that nobody asked for so far.
  std::size_t unused() const;

 private:
  struct Entry {
    CassetteCall call;
    std::uint64_t number = 0;
    std::string key;  // by which it is found
    bool used = false;
  };
  std::string key_of(std::string_view body) const;
  CassetteMatch match_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace proctor
