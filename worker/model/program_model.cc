#include "worker/model/program_model.h"

#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "worker/model/call_rules.h"
#include "worker/model/chat_protocol.h"

namespace proctor {
namespace {

class ProgramModel final : public Model {
 public:
  explicit ProgramModel(std::vector<std::string> argv) : argv_(std::move(argv)) {}

  ModelReply ask(const ModelRequest& request, std::stop_token stop) override {
    CommandSpec spec;
    spec.argv = argv_;
    spec.stdin_bytes = program_request(request);
    spec.timeout = request.timeout;
    spec.output_max = kModelReplyBytes;
    spec.cancelled = [&stop] { return stop.stop_requested(); };
    const Result<CommandOutcome> outcome = run_command(spec);
    ModelReply reply;
    if (!outcome.ok()) {
      reply.billed = false;  // it never began
      reply.why = outcome.error().detail;
      return reply;
    }
    reply.raw = outcome->out;
    if (outcome->cancelled) {
      reply.end = ModelReply::End::kStopped;
    } else if (outcome->output_cut) {
      reply.end = ModelReply::End::kUnreadable;
      reply.why = too_large();
      reply.raw.clear();
    } else if (outcome->exit_code == kModelBusyExit && !outcome->timed_out) {
      reply.end = ModelReply::End::kBusy;
      reply.billed = false;
      reply.why = printable(outcome->describe(), 500);
    } else if (!outcome->success()) {
      reply.why = printable(outcome->describe(), 500);
    } else {
      read_program_answer(outcome->out, reply);
    }
    return reply;
  }

 private:
  std::vector<std::string> argv_;
};

}  // namespace

std::unique_ptr<Model> open_program_model(const ModelAccess& access) {
  return std::make_unique<ProgramModel>(access.program);
}

}  // namespace proctor
