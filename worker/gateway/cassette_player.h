#pragma once
// Answers the calls of one session from a recording: each recorded call once, found as the models
// file says.  A call that is not in it is a divergence, and the first place is named at which it
// differs from the recorded call that begins most like it.  Thread-safe.
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/contract/models_file.h"
#include "common/trace/model_calls.h"

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
    std::uint64_t expected = 0;  // the recorded call that begins most like it; 0: none was left
    std::string pointer, ours, theirs;
    std::string text;  // for people
  };
  // `redact` strikes secrets out of both bodies before a part of them is shown.
  using Redact = std::function<std::string(std::string_view)>;
  std::variant<Hit, Miss> take(ModelApi api, std::string_view body, const Redact& redact = {});
  // Calls that nobody asked for so far.
  std::size_t unused() const;

 private:
  struct Entry {
    CassetteCall call;
    std::uint64_t number = 0;
    std::string key;       // by which it is found
    std::string by_rules;  // RequestForm::kByRules; empty until another day's request asks for it
    bool used = false;
  };
  std::string key_of(std::string_view body) const;
  Entry* find_by_rules(std::string_view route, const std::string& form);
  Miss miss(std::string_view route, std::string_view body, const std::string& form,
            const Redact& redact) const;
  CassetteMatch match_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace proctor
