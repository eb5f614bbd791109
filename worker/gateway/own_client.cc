#include "worker/gateway/own_client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/net_host.h"
#include "worker/gateway/call_record.h"
#include "worker/gateway/provider_connection.h"
#include "worker/gateway/refusal.h"

namespace proctor {
namespace {
// Waits in slices, so that whoever asks can be told to leave.
class PatientConnection final : public ProviderConnection {
 public:
  PatientConnection(UniqueFd fd, const std::function<bool()>& over)
      : inner_(plain_connection(std::move(fd))), over_(over) {}
  bool write(std::string_view bytes, int stop, SteadyClock::time_point until) override {
    return inner_->write(bytes, stop, until);
  }
  Read read(std::string& out, int stop, SteadyClock::time_point until) override {
    constexpr std::chrono::milliseconds kSlice{200};
    for (;;) {
      const auto slice = std::min(until, SteadyClock::now() + kSlice);
      const Read got = inner_->read(out, stop, slice);
      if (got != Read::kTime) return got;
      if (over_()) return Read::kStopped;
      if (until <= SteadyClock::now()) return Read::kTime;
    }
  }
  bool is_quiet() const override { return inner_->is_quiet(); }

 private:
  std::unique_ptr<ProviderConnection> inner_;
  const std::function<bool()>& over_;
};
}  // namespace

OwnFailure failure_of(int status) {
  constexpr int kDenied = 401, kUnpaid = 402, kForbidden = 403, kAbsent = 404, kSlow = 408,
                kServer = 500;
  if (is_busy(status)) return OwnFailure::kBusy;
  if (status == kDenied || status == kUnpaid || status == kForbidden || status == kAbsent)
    return OwnFailure::kNoAccess;
  return status == 0 || status == kSlow || kServer <= status ? OwnFailure::kFailed
                                                             : OwnFailure::kRefused;
}

Result<OwnReply> ask_gateway(const fs::path& dir, const Secret& token, ModelApi api,
                             std::string_view body, const std::function<bool()>& over) {
  PROCTOR_TRY(UniqueFd fd, connect_in(dir, "gateway"));
  PatientConnection connection(std::move(fd), over);
  constexpr std::chrono::hours kWhole{48};  // `over` is asked meanwhile
  const auto until = SteadyClock::now() + kWhole;
  const bool messages = api == ModelApi::kMessages;
  std::string head = messages ? "POST /v1/messages HTTP/1.1\r\nanthropic-version: 2023-06-01\r\n"
                              : "POST /v1/chat/completions HTTP/1.1\r\n";
  head += "host: 127.0.0.1\r\nauthorization: Bearer " + token.reveal() +
          "\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: " +
          std::to_string(body.size()) + "\r\n\r\n";
  // What is not taken whole has been refused already: the answer says why.
  (void)(connection.write(head, -1, until) && connection.write(body, -1, until));
  ProviderAnswer answer(connection, -1);
  OwnReply out;
  if (!answer.read_head(until) || !answer.read_all(out.body, kAnswerBytes, until)) {
    if (over()) return Error{Errc::kUnavailable, "the run's gateway: " + answer.why()};
    return OwnReply{};
  }
  out.status = answer.head().status;
  out.retry_after = retry_after(answer.head().fields).value_or(std::chrono::milliseconds(0));
  if (find_field(answer.head().fields, kOwnHeader) != nullptr)
    if (const std::string* word = find_field(answer.head().fields, "x-should-retry"))
      out.again = *word == "true";
  return out;
}
}  // namespace proctor
