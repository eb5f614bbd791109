#pragma once
// `proctor cvdp run` as a whole, and its log.  Private to the program.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/words.h"
#include "coordinator/cvdp/report/report.h"
#include "coordinator/cvdp/run/agent.h"
#include "coordinator/cvdp/run/campaign.h"
#include "coordinator/cvdp/run/results.h"

namespace proctor::cli {
// PREFIX/run.log: what `proctor cvdp run` says, on standard output and standard error, appended
// line by line while it says it.  Workers have logs of their own, and what is printed below the
// C library (by programs that are started) is not in it, as upstream.
// Opened and closed while no other thread prints.  Source: CVDP 2.3, 9.4.
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

// A dataset run in one go: imported, frozen, run, and reported in upstream's layout.
//   PREFIX/campaign/    the campaign with its runs, journal and evidence; campaign-2, ... of what
//                       was asked for later (CvdpPart)
//   PREFIX/cvdp.json    what was asked for: another question needs another prefix
//   PREFIX/...          upstream's files, or in sample_1, sample_2, ... and the composite report
// Running it again goes on where it stopped, with another --id or a larger -n the prefix grows; the
// reports are made anew from the evidence of all of it.

// One way to work on every problem.
struct CvdpMode {
  std::string name;    // "golden"
  std::string method;  // of the campaign: "reference"
  std::string folder;  // below the prefix; empty: the prefix itself
  bool golden = false;
  // For an agent: its image, as it was named, or its method; that one's name is `method` then.
  std::string agent{};
  AgentGiven given{};                  // of an image
  std::optional<Method> own_method{};  // instead of one
  // For a single-shot method.
  struct SingleShot {
    std::string method;    // as campaign.yaml has it, in JSON
    std::string question;  // what decides its results
    // For the samples from the first to the second number.
    std::function<Result<cvdp::SingleShotTask>(const cvdp::Record&, std::uint32_t, std::uint32_t)>
        task;
    bool asks = false;  // a model, with our prompts
  };
  std::optional<SingleShot> single_shot{};
};
// The engine that runs harnesses: OCI for images of the store and the Engine API for others; one of
// these alone; `docker compose`.  kAuto leaves to compose what is beyond the subset of the others.
enum class CvdpEngine { kAuto, kApi, kOci, kCompose };
constexpr auto words(CvdpEngine) {
  return std::to_array<Word<CvdpEngine>>({{"auto", CvdpEngine::kAuto},
                                          {"api", CvdpEngine::kApi},
                                          {"oci", CvdpEngine::kOci},
                                          {"compose", CvdpEngine::kCompose}});
}

struct CvdpPlan {
  fs::path prefix;
  ImportOptions dataset;  // its campaign folder is filled in
  std::vector<CvdpMode> modes;
  std::uint32_t samples = 1;
  std::int64_t k = 1;
  std::uint32_t workers = 1, slots = 1;
  bool reports_only = false;  // nothing is run
  CvdpEngine engine = CvdpEngine::kAuto;
  // How models are reached: a file, or the text of the prefix's models.json.
  std::string models_file, models_text;
  std::string judge, judge_method;  // a model; empty: nobody judges
  std::string prices;               // a price table; empty: the abstract one
  cvdp::ReportMetadata metadata;
};
struct CvdpOutcome {
  int exit_code = 0;  // of the campaign
  bool stopped = false;
  std::vector<std::vector<SampleResults>> samples;  // by mode
};
// kConflict: the prefix holds something else.
Result<CvdpOutcome> run_cvdp(CvdpPlan plan);
}  // namespace proctor::cli
