#pragma once
// PREFIX/run.log: what `proctor cvdp run` says, on standard output and standard error, appended
// line by line while it says it.  Workers have logs of their own, and what is printed below the
// C library (by programs that are started) is not in it, as upstream.
// Private to the program.  Opened and closed while no other thread prints.  Source: CVDP 2.3, 9.4.
#include <cstdio>
#include <memory>
#include <string>

#include "common/base/files.h"

namespace proctor::cli {

class RunLog {
 public:
  // From now on, until it is destroyed.
  static Result<std::unique_ptr<RunLog>> open(const fs::path& file);
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  ~RunLog();

 private:
  // One of the two streams, in front of the one that was there.
  struct Stream {
    std::FILE* behind = nullptr;
    std::FILE* log = nullptr;
    std::FILE* front = nullptr;
    std::string line;  // that has not ended
  };
  RunLog() = default;
  static void put(Stream& stream, std::FILE* behind, std::FILE* log);
  static ssize_t write(void* stream, const char* bytes, std::size_t size);

  std::FILE* log_ = nullptr;
  Stream out_, err_;
};

}  // namespace proctor::cli
