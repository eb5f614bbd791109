#include "worker/gateway/provider_answer.h"

#include <algorithm>
#include <charconv>

namespace proctor {

ProviderAnswer::More ProviderAnswer::broken(std::string why) {
  why_ = std::move(why);
  return More::kBroken;
}

bool ProviderAnswer::fill(SteadyClock::time_point until, More& how) {
  switch (connection_.read(bytes_, stop_, until)) {
    case ProviderConnection::Read::kBytes:
      return true;
    case ProviderConnection::Read::kTime:
      why_ = "the provider sent nothing in time";
      how = More::kTime;
      return false;
    case ProviderConnection::Read::kEnd:
      how = broken("the provider closed the connection");
      return false;
    case ProviderConnection::Read::kBroken:
      how = broken("the connection to the provider broke");
      return false;
    case ProviderConnection::Read::kStopped:
      how = broken("the run ended");
      return false;
  }
  return false;
}

bool ProviderAnswer::read_head(SteadyClock::time_point until) {
  constexpr int kOk = 200;
  for (int interim = 0; interim < 10; ++interim) {
    std::size_t size = 0;
    while ((size = gateway_head_length(bytes_)) == 0) {
      if (kGatewayHeadBytes <= bytes_.size()) {
        why_ = "an answer's head of more than 32 KiB";
        return false;
      }
      More how{};
      if (!fill(until, how)) return false;
    }
    const Result<AnswerHead> head = read_answer_head(std::string_view(bytes_).substr(0, size));
    bytes_.erase(0, size);
    if (!head.ok()) {
      why_ = "an answer that is no HTTP: " + head.error().detail;
      return false;
    }
    head_ = *head;
    left_ = head_.body.bytes;
    whole_ = head_.body.kind == HttpFraming::Kind::kNone;
    if (kOk <= head_.status) return true;
  }
  why_ = "too many answers that are none yet";
  return false;
}

ProviderAnswer::More ProviderAnswer::read_body(std::string& out, SteadyClock::time_point until) {
  if (whole_) return More::kWhole;
  for (;;) {
    const std::size_t before = out.size();
    switch (head_.body.kind) {
      case HttpFraming::Kind::kNone:
        break;
      case HttpFraming::Kind::kLength: {
        const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes_.size()));
        out.append(bytes_, 0, now);
        bytes_.erase(0, now);
        left_ -= now;
        whole_ = left_ == 0;
        break;
      }
      case HttpFraming::Kind::kChunked: {
        const auto used = chunks_.feed(bytes_, out);
        if (!used.ok()) return broken(used.error().detail);
        bytes_.erase(0, *used);
        whole_ = chunks_.done();
        break;
      }
      case HttpFraming::Kind::kToTheEnd:
        out += bytes_;
        bytes_.clear();
        break;
    }
    if (before < out.size()) return More::kBytes;
    if (whole_) return More::kWhole;
    More how{};
    if (fill(until, how)) continue;
    if (head_.body.kind == HttpFraming::Kind::kToTheEnd && how == More::kBroken &&
        why_ == "the provider closed the connection") {
      whole_ = true;
      return More::kWhole;
    }
    return how;
  }
}

bool ProviderAnswer::read_all(std::string& out, std::size_t most, SteadyClock::time_point until) {
  for (;;) {
    const More more = read_body(out, until);
    if (more == More::kWhole) return true;
    if (more != More::kBytes) return false;
    if (most < out.size()) {
      why_ = "an answer that is too large";
      return false;
    }
  }
}

std::optional<std::chrono::milliseconds> retry_after(const HttpFields& fields) {
  constexpr std::uint32_t kMost = 3'600'000;
  struct Word {
    const char* name;
    std::uint32_t ms;
  };
  for (const Word& word : {Word{"retry-after-ms", 1}, Word{"retry-after", 1'000}}) {
    const std::string* said = find_field(fields, word.name);
    std::uint32_t n = 0;
    if (said == nullptr ||
        std::from_chars(said->data(), said->data() + said->size(), n).ec != std::errc())
      continue;
    return std::chrono::milliseconds(std::min(n, kMost / word.ms) * word.ms);
  }
  return std::nullopt;
}

}  // namespace proctor
