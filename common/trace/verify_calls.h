#pragma once
// What a run's trace says of its calls of models, held against what was kept of them: every piece
// has its digest, every body is what its pieces make, every answer has its request, and the sums
// that the gateway told at its end are those of its calls.  Adapter (reads files); one thread.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/trace/event.h"
#include "common/trace/model_calls.h"

namespace proctor {

class ModelCallAudit {
 public:
  // `line` 0: of the file as a whole.
  using Problem = std::function<void(std::string_view file, std::string what, std::uint64_t line)>;
  ModelCallAudit(fs::path run_dir, Problem problem)
      : dir_(std::move(run_dir)), problem_(std::move(problem)) {}
  void on(const Event& event, std::uint64_t line);

 private:
  void request(const Json& payload, std::uint64_t line);
  void response(const Json& payload, std::uint64_t line);
  void closed(const Json& payload, std::uint64_t line);
  void check_body(const std::string& claimed, const std::vector<std::string>& pieces,
                  std::uint64_t line);
  const SegmentReader* reader();
  fs::path dir_;
  Problem problem_;
  std::optional<SegmentReader> reader_;
  bool unreadable_ = false;
  std::set<std::uint64_t> open_;  // requests without an answer yet
  std::uint64_t charged_ = 0, hashed_ = 0;
  // Workers of before kept each text in a file of its own, which the report lists.
  bool in_pieces_ = false;
  bool all_listed_ = true;  // no call of this session is without an event of its own
};

}  // namespace proctor
