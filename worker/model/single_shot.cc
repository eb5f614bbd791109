#include "worker/model/single_shot.h"

#include <algorithm>

#include "common/answers/single_shot.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "worker/model/model.h"

namespace proctor {
namespace {
using Clock = std::chrono::steady_clock;
using End = ExecOutcome::End;
using Said = ModelReply::End;

// One attempt at the answer of one problem.
class Asking {
 public:
  Asking(const AgentJob& job, const SingleShotTools& tools, const answers::SingleShotTask& task,
         std::chrono::milliseconds time, std::stop_token stop)
      : job_(job),
        call_(job.method.call),
        tools_(tools),
        task_(task),
        begin_(Clock::now()),
        deadline_(begin_ + time),
        stop_(std::move(stop)) {}

  struct Ended {
    ExecOutcome outcome;
    std::optional<answers::AnsweredFiles> answer;
    std::string text, complaints;
    ModelLack no_model;
  };

  Result<Ended> run() {
    Result<End> end = ask();
    if (!end.ok()) return std::move(end).error();
    out_.outcome.end = *end;
    out_.outcome.wall =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
    return std::move(out_);
  }

 private:
  Result<End> ask() {
    std::uint32_t failures = 0;
    for (std::uint32_t attempt = 1;; ++attempt) {
      if (stop_.stop_requested()) return End::kCancelled;
      if (is_late()) return End::kTimedOut;
      PROCTOR_TRY(const std::optional<ModelReply> answer, call());
      if (!answer) continue;  // and why is seen there
      const ModelReply& reply = *answer;
      switch (reply.end) {
        case Said::kNever:
          return exit(1);
        case Said::kNoAccess:
          return without_model(reply);
        case Said::kRefused:
          return Error{Errc::kInvalid, said(reply.why)};
        case Said::kNotNow:
          --attempt;  // no call was made
          wait(retry_after_);
          continue;
        case Said::kAnswered:
          if (read(reply.text)) return exit(0);
          [[fallthrough]];
        case Said::kUnreadable:
          failures = 0;
          break;
        case Said::kBusy:
        case Said::kFailed:
          ++failures;
      }
      if (attempt == call_.attempts) return give_up(reply);
      if (0 < failures) wait(wait_before_next(failures, tools_.access->backoff, retry_after_));
    }
  }

  Result<End> give_up(const ModelReply& last) {
    if (last.end == Said::kBusy) {
      PROCTOR_TRY([[maybe_unused]] const End end, without_model(last));
      out_.no_model.busy = true;
      return exit(kModelBusyExit);
    }
    if (last.end == Said::kFailed)
      return is_late() ? Result<End>(End::kTimedOut) : without_model(last);
    out_.answer = answers::files_of_no_reply(task_);
    return exit(0);
  }

  // Nobody answered, and not for what was asked.
  Result<End> without_model(const ModelReply& last) {
    out_.no_model.why =
        "model " + call_.model + ": " + (last.cause.empty() ? last.why : last.cause);
    return exit(1);
  }

  End exit(int code) {
    out_.outcome.exit_code = code;
    return End::kExited;
  }

  std::string said(const std::string& why) const {
    return "model " + call_.model + ", call " + std::to_string(calls_) + ": " + why;
  }

  void complain(const std::string& why) { out_.complaints += said(why) + "\n"; }

  bool is_late() const { return deadline_ <= Clock::now(); }

  // Until then, the end of the run's time, or until somebody stops the run.
  void wait(std::chrono::milliseconds time) {
    pause_until(std::min(Clock::now() + time, deadline_), stop_);
  }

  // No value: the run is stopped, or its time is over.
  Result<std::optional<ModelReply>> call() {
    const std::string body = chat_body({call_.model, task_.system, task_.user});
    const fs::path stem = job_.logs / ("call-" + std::to_string(++calls_));
    PROCTOR_CHECK_OK(write_file(stem.string() + ".request.json", body, Durability::kLazy));
    const auto over = [this] { return stop_.stop_requested() || is_late(); };
    const Result<OwnReply> answer = tools_.ask(body, over);
    if (!answer.ok() && over()) return std::optional<ModelReply>();
    if (!answer.ok()) return answer.error();
    retry_after_ = answer->retry_after;
    PROCTOR_CHECK_OK(write_file(stem.string() + ".reply",
                                std::string_view(answer->body).substr(0, kModelReplyBytes),
                                Durability::kLazy));
    std::optional<ModelReply> out = read_chat_answer(*answer);
    if (out->end == Said::kNotNow)
      --calls_;
    else if (out->end != Said::kAnswered)
      complain(out->why);
    return out;
  }

  bool read(const std::string& text) {
    Result<answers::AnsweredFiles> files = answers::files_of_reply(task_, text);
    out_.text = text;
    if (!files.ok()) {
      complain("the answer cannot be read: " + files.error().detail);
      return false;
    }
    out_.answer = std::move(files).value();
    return true;
  }

  const AgentJob& job_;
  const ModelCall& call_;
  const SingleShotTools& tools_;
  const answers::SingleShotTask& task_;
  Clock::time_point begin_, deadline_;
  std::stop_token stop_;
  std::uint32_t calls_ = 0;
  std::chrono::milliseconds retry_after_{0};  // of the last answer
  Ended out_;
};

// Longer names would be a fault of the host where they are one of the answer.
bool fits(const std::string& path) {
  constexpr std::size_t kPathMost = 2000, kNameMost = 255;
  return path.size() <= kPathMost &&
         std::ranges::all_of(split(path, '/'),
                             [](std::string_view name) { return name.size() <= kNameMost; });
}

// A name that the workspace will not have is the answer's fault, and the rest of it counts.
Result<std::string> put_files(const AgentJob& job, const answers::AnsweredFiles& answer) {
  constexpr std::size_t kFilesMost = 10'000;
  std::string complaints;
  for (const std::string& name : answer.refused)
    complaints += "refused: " + printable(name) + " leads outside\n";
  for (std::size_t i = 0; i < answer.files.size(); ++i) {
    if (i == kFilesMost) {
      complaints += "refused: more than " + std::to_string(kFilesMost) + " files\n";
      break;
    }
    const std::string& path = answer.files[i].path;
    const Status put = fits(path) ? job.workspace.put_file(path, answer.files[i].text, 0644)
                                  : Status(Error{Errc::kInvalid, printable(path) + ": too long"});
    if (!put.ok() && put.error().code != Errc::kInvalid) return put.error();
    if (!put.ok()) complaints += "refused: " + printable(put.error().detail, 500) + "\n";
  }
  PROCTOR_CHECK_OK(
      write_file(job.logs / "answer.json", answers::write_answer(answer), Durability::kLazy));
  return complaints;
}

class SingleShot final : public Agent {
 public:
  explicit SingleShot(SingleShotTools tools) : tools_(std::move(tools)) {}

  Result<AgentReport> work(const AgentJob& job, std::stop_token cancel) override {
    PROCTOR_TRY(const answers::SingleShotTask task, task_of(job.contract));
    if (job.method.call.model.empty()) return hand_in(job, task);
    const std::optional<std::chrono::milliseconds> time =
        job.start_program ? job.start_program() : job.wall;
    if (!time) return AgentReport{};
    job.on_sandbox();
    PROCTOR_TRY(Asking::Ended ended, Asking(job, tools_, task, *time, std::move(cancel)).run());
    if (ended.answer) {
      PROCTOR_TRY(const std::string refused, put_files(job, *ended.answer));
      ended.complaints += refused;
    }
    ended.outcome.stdout_bytes = ended.text.size();
    ended.outcome.stderr_bytes = ended.complaints.size();
    const fs::path out = job.logs / "stdout", err = job.logs / "stderr";
    PROCTOR_CHECK_OK(write_file(out, ended.text, Durability::kLazy));
    PROCTOR_CHECK_OK(write_file(err, ended.complaints, Durability::kLazy));
    job.on_tool({"model", job.method.call.model, ended.outcome, *time, out, err});
    AgentReport report{ended.outcome};
    report.no_model = std::move(ended.no_model);
    return report;
  }

 private:
  static Result<answers::SingleShotTask> task_of(const Contract& contract) {
    const auto file =
        std::ranges::find(contract.files, contract.single_shot, &ReferencedFile::path);
    if (contract.single_shot.empty() || file == contract.files.end())
      return Error{Errc::kInvalid, "contract " + contract.id + " has no single_shot"};
    Result<answers::SingleShotTask> task = answers::read_task(file->bytes);
    if (!task.ok()) return in_context(file->path, task.error());
    return task;
  }

  static Result<AgentReport> hand_in(const AgentJob& job, const answers::SingleShotTask& task) {
    if (task.given.size() < job.replicate || job.replicate == 0)
      return Error{Errc::kInvalid, "no answer is given for sample " +
                                       std::to_string(job.replicate) + ", and no model is named"};
    const answers::GivenAnswer& given = task.given[job.replicate - 1];
    if (const auto* patch =
            std::get_if<answers::GivenPatch>(&given))  // the run's own says what it was
      return hand_in_patch(job.workspace, "the given patch", patch->diff);
    answers::AnsweredFiles answer;
    if (const auto* files = std::get_if<answers::GivenFiles>(&given)) {
      answer.files = files->files;
    } else {
      auto read = answers::files_of_reply(task, std::get<answers::GivenText>(given).text);
      answer = read.ok() ? std::move(read).value() : answers::files_of_no_reply(task);
    }
    PROCTOR_TRY(const std::string refused, put_files(job, answer));
    PROCTOR_CHECK_OK(write_file(job.logs / "stderr", refused, Durability::kLazy));
    return AgentReport{};
  }

  SingleShotTools tools_;
};
}  // namespace

std::unique_ptr<Agent> make_single_shot(SingleShotTools tools) {
  return std::make_unique<SingleShot>(std::move(tools));
}
}  // namespace proctor
