#pragma once
// The coordinator: the product's own, as a process of its own that can be killed.
#include <memory>
#include <optional>

#include "common/base/subprocess.h"
#include "common/wire/curve.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::liar {

// What `liar --serve FOLDER ENDPOINT` does: until the campaign has ended; the exit code.
int serve(const fs::path& folder, const std::string& endpoint);

class Server {
 public:
  explicit Server(fs::path folder) : folder_(std::move(folder)) {}
  // A life of it; after it returns, `endpoint()` answers.
  Status start();
  void kill();
  // It has said that the campaign is over: it may end now.
  void let_go() { child_->signal(15); }
  std::optional<int> poll() { return child_->poll(); }
  std::optional<int> wait(std::chrono::milliseconds t) { return child_->wait(t); }
  const std::string& endpoint() const { return endpoint_; }
  std::string said() const;
  // Of all lives that have ended or are read now.
  std::int64_t cpu_ms() const;

 private:
  fs::path folder_;
  std::optional<Child> child_;
  std::string endpoint_ = "tcp://127.0.0.1:0";
  std::int64_t cpu_before_ms_ = 0;
};

}  // namespace proctor::liar
