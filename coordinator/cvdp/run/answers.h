#pragma once
// Answers that are there already: completions of a model that ran elsewhere (upstream's
// local_import), a prompt_response.jsonl, or what the runs of another prefix handed in.
// Read whole; each bounded, so that one that is too large leaves out its problem and no other.
// Private to the program.  Source: CVDP 1.8, 2.1 (--answers), 8.6.
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/cvdp/run/dataset_file.h"

namespace proctor::cli {

class StoredAnswers {
 public:
  // {"id", "completion"} a line; of an id that comes again the next one is the next sample's.
  static Result<StoredAnswers> completions(const std::string& file);
  // prompt_response.jsonl, one answer for all samples; a prefix of upstream's or ours, sample by
  // sample; of ours what each run handed in, to the byte.
  static Result<StoredAnswers> replay(const std::string& file_or_prefix, std::uint32_t samples);

  // One for each sample from the first to the last, counted from 1.  kNotFound: there is none, or
  // too few; kExhausted: too large, or not to be
  // read.
  Result<std::vector<cvdp::GivenAnswer>> of(const cvdp::Record& record, std::uint32_t from,
                                            std::uint32_t to) const;
  // Of everything that was read.
  const std::string& digest() const { return digest_; }

 private:
  void add(const std::string& id, std::size_t sample, cvdp::GivenAnswer answer);
  void refuse(const std::string& id, std::string why) { refused_[id] = std::move(why); }
  Status read_completions(const std::string& file);
  Status read_responses(const std::string& file, std::size_t sample);
  Status read_runs(const fs::path& campaign, std::uint32_t before, std::uint32_t samples);

  std::string source_;
  std::map<std::string, std::vector<std::optional<cvdp::GivenAnswer>>> answers_;
  std::map<std::string, std::string> refused_;  // id -> why
  bool for_all_ = false;                        // one answer for all samples
  std::string digest_;
};

}  // namespace proctor::cli
