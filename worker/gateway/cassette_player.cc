#include "worker/gateway/cassette_player.h"

#include <algorithm>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "worker/gateway/cassette_match.h"

namespace proctor {

CassettePlayer::CassettePlayer(std::vector<CassetteCall> calls, const std::string& run,
                               CassetteMatch match)
    : match_(match) {
  const bool own = std::ranges::any_of(calls, [&](const CassetteCall& c) { return c.run == run; });
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (own && calls[i].run != run) continue;
    std::string key = key_of(calls[i].request());
    entries_.push_back({std::move(calls[i]), i + 1, std::move(key), false});
  }
}

std::string CassettePlayer::key_of(std::string_view body) const {
  switch (match_) {
    case CassetteMatch::kExact:
      return sha256(body).hex();
    case CassetteMatch::kCanonical:
      return sha256(canonical_request(body)).hex();
    case CassetteMatch::kSequence:
      return "";
  }
  return "";
}

std::variant<CassettePlayer::Hit, CassettePlayer::Miss> CassettePlayer::take(
    ModelApi api, std::string_view body) {
  const std::string key = key_of(body);
  const std::lock_guard lock(mutex_);
  Entry* next = nullptr;
  for (Entry& e : entries_) {
    if (e.used || e.call.route != to_string(api)) continue;
    if (next == nullptr) next = &e;
    if (e.key != key) continue;
    e.used = true;
    return Hit{e.number, &e.call};
  }
  Miss miss;
  if (next == nullptr) {
    miss.text = "the recording has no further call of " + std::string(to_string(api));
    return miss;
  }
  miss.expected = next->number;
  const auto found = first_difference(body, next->call.request());
  if (found) {
    miss.pointer = found->pointer;
    miss.ours = printable(found->ours, 400);
    miss.theirs = printable(found->theirs, 400);
  } else {
    miss.ours = miss.theirs = "the same, but for spelling and what is left out of a comparison";
  }
  miss.text = "call " + std::to_string(miss.expected) + " of the recording: " +
              (miss.pointer.empty() ? "the body" : printable(miss.pointer, 200)) +
              " differs: " + miss.ours + " here, " + miss.theirs + " recorded";
  return miss;
}

std::size_t CassettePlayer::unused() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const Entry& e) { return !e.used; }));
}

}  // namespace proctor
