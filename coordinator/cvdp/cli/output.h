#pragma once
// A file written piece by piece that appears under its name only when it is whole; without a name
// it is standard output.  Private to the program.  Not thread-safe.
#include <cstdio>
#include <memory>
#include <string_view>

#include "common/base/files.h"

namespace proctor::cli {

class OutputFile {
 public:
  static Result<OutputFile> open(const fs::path& target) {
    OutputFile out;
    if (target.empty()) return out;
    out.target_ = target;
    out.part_ = target.string() + ".part";
    out.file_.reset(std::fopen(out.part_.c_str(), "wb"));
    if (out.file_ == nullptr) return errno_error("write " + target.string(), errno);
    return out;
  }
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (file_ == nullptr) return;
    file_.reset();
    std::error_code ec;
    fs::remove(part_, ec);
  }
  Status write(std::string_view bytes) {
    std::FILE* const to = file_ == nullptr ? stdout : file_.get();
    if (std::fwrite(bytes.data(), 1, bytes.size(), to) != bytes.size())
      return errno_error("write " + (target_.empty() ? "standard output" : target_.string()),
                         errno);
    return ok_status();
  }
  Status close() {
    if (file_ == nullptr)
      return std::fflush(stdout) == 0 ? ok_status()
                                      : Status(errno_error("write standard output", errno));
    if (std::fclose(file_.release()) != 0) return errno_error("write " + target_.string(), errno);
    PROCTOR_CHECK_OK(sync_path(part_));
    std::error_code ec;
    fs::rename(part_, target_, ec);
    if (ec) return Error{Errc::kInvalid, "write " + target_.string() + ": " + ec.message()};
    return ok_status();
  }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  OutputFile() = default;
  fs::path target_;
  fs::path part_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace proctor::cli
