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
    entries_.push_back({std::move(calls[i]), i + 1, std::move(key), "", false});
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

// The rules are for a request that is like no recorded one without them: a recording that was
// played before there were rules is played as it was.
CassettePlayer::Entry* CassettePlayer::find_by_rules(std::string_view route,
                                                     const std::string& form) {
  for (Entry& e : entries_) {
    if (e.used || e.call.route != route) continue;
    if (e.by_rules.empty()) e.by_rules = canonical_request(e.call.request(), RequestForm::kByRules);
    if (e.by_rules == form) return &e;
  }
  return nullptr;
}

std::variant<CassettePlayer::Hit, CassettePlayer::Miss> CassettePlayer::take(ModelApi api,
                                                                             std::string_view body,
                                                                             const Redact& redact) {
  const std::string key = key_of(body), route(to_string(api));
  const std::lock_guard lock(mutex_);
  const auto same = std::ranges::find_if(
      entries_, [&](const Entry& e) { return !e.used && e.call.route == route && e.key == key; });
  Entry* found = same == entries_.end() ? nullptr : &*same;
  std::string form;
  if (found == nullptr && match_ == CassetteMatch::kCanonical) {
    form = canonical_request(body, RequestForm::kByRules);
    if (!form.empty()) found = find_by_rules(route, form);
  }
  if (found == nullptr) return miss(route, body, form, redact);
  found->used = true;
  found->by_rules.clear();
  return Hit{found->number, &found->call};
}

CassettePlayer::Miss CassettePlayer::miss(std::string_view route, std::string_view body,
                                          const std::string& form, const Redact& redact) const {
  const Entry* nearest = nullptr;
  std::ptrdiff_t most = -1;
  for (const Entry& e : entries_) {
    if (e.used || e.call.route != route) continue;
    const auto alike = std::ranges::mismatch(form, e.by_rules).in1 - form.begin();
    if (alike <= most) continue;
    most = alike;
    nearest = &e;
  }
  Miss miss;
  if (nearest == nullptr) {
    miss.text = "the recording has no further call of " + std::string(route);
    return miss;
  }
  miss.expected = nearest->number;
  const auto shown = [&](std::string_view text) {
    return redact ? redact(text) : std::string(text);
  };
  const auto found = first_difference(
      shown(body), shown(nearest->call.request()),
      match_ == CassetteMatch::kCanonical ? RequestForm::kByRules : RequestForm::kPlain);
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
