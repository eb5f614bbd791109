#include "coordinator/cvdp/run/run_log.h"

#include <cerrno>

namespace proctor::cli {

Result<std::unique_ptr<RunLog>> RunLog::open(const fs::path& file) {
  PROCTOR_CHECK_OK(make_private_dirs(file.parent_path()));
  std::unique_ptr<RunLog> out(new RunLog);
  out->log_ = std::fopen(file.c_str(), "ae");
  if (out->log_ == nullptr) return errno_error("write " + file.string(), errno);
  put(out->out_, stdout, out->log_);
  put(out->err_, stderr, out->log_);
  if (out->out_.front == nullptr || out->err_.front == nullptr)
    return errno_error("write " + file.string(), errno);
  std::fflush(stdout);
  stdout = out->out_.front;
  stderr = out->err_.front;
  return out;
}

RunLog::~RunLog() {
  for (Stream* s : {&out_, &err_}) {
    if (s->front == nullptr) continue;
    std::fflush(s->front);
    if (stdout == s->front) stdout = s->behind;
    if (stderr == s->front) stderr = s->behind;
    std::fclose(s->front);
    if (!s->line.empty()) std::fprintf(log_, "%s\n", s->line.c_str());
  }
  if (log_ != nullptr) std::fclose(log_);
}

void RunLog::put(Stream& stream, std::FILE* behind, std::FILE* log) {
  stream.behind = behind;
  stream.log = log;
  stream.front = ::fopencookie(&stream, "w", {nullptr, &RunLog::write, nullptr, nullptr});
  if (stream.front != nullptr) std::setvbuf(stream.front, nullptr, _IOLBF, BUFSIZ);
}

// A line that is drawn again and again counts as it was at last.
ssize_t RunLog::write(void* stream, const char* bytes, std::size_t size) {
  Stream& s = *static_cast<Stream*>(stream);
  const std::size_t written = std::fwrite(bytes, 1, size, s.behind);
  std::fflush(s.behind);
  constexpr std::string_view kClear = "\x1b[K";
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] == '\r') {
      s.line.clear();
    } else if (bytes[i] == '\n') {
      std::fprintf(s.log, "%s\n", s.line.c_str());
      s.line.clear();
    } else {
      s.line += bytes[i];
      if (s.line.ends_with(kClear)) s.line.resize(s.line.size() - kClear.size());
    }
  }
  std::fflush(s.log);
  return static_cast<ssize_t>(written);
}

}  // namespace proctor::cli
