#include "coordinator/core/roster.h"

#include <tuple>

#include "common/base/result.h"
#include "common/contract/host_things.h"

namespace proctor {
namespace capability {
std::uint64_t image_bit(std::size_t index) {
  constexpr std::size_t kOwnBits = 18;  // the last is of all others
  return kImageFirst << std::min(index, kOwnBits);
}

std::uint64_t thing_bit(std::size_t index) {
  constexpr std::size_t kFirst = 32, kOwnBits = 31;  // the last is of all others
  return std::uint64_t{1} << (kFirst + std::min(index, kOwnBits));
}

std::uint64_t from_features(const std::vector<std::string>& features,
                            const std::vector<std::string>& images,
                            const std::vector<std::string>& things) {
  std::uint64_t has = 0;
  for (std::size_t i = 0; i < things.size(); ++i)
    if (std::ranges::find(features, std::string(kLacks) + things[i]) == features.end())
      has |= thing_bit(i);
  // Of those that share a bit one that is lacking takes it.
  for (std::size_t i = 0; i < things.size(); ++i)
    if (std::ranges::find(features, std::string(kLacks) + things[i]) != features.end())
      has &= ~thing_bit(i);
  for (const std::string& f : features) {
    if (f == "sandbox:bubblewrap") has |= kBubblewrap;
    if (f == "sandbox:docker") has |= kDocker | kImages;
    if (f == "sandbox:null") has |= kNull;
    if (f == "isolation:userspace") has |= kUserspace;
    if (f == "unfit:bubblewrap") has |= kUnfitBubblewrap;
    if (f == "unfit:docker") has |= kUnfitDocker;
    if (f == "unfit:oci") has |= kUnfitOci;
    if (f == "unfit:userspace") has |= kUnfitUserspace;
    if (f == kDiskFull) has |= kFullDisk;
    if (f == kHasToolLoop) has |= kToolLoop;
    if (f == kHasAgentTools) has |= kAgentTools;
    if (!f.starts_with("image:")) continue;
    const auto at = std::ranges::find(images, f);
    if (at != images.end()) has |= image_bit(static_cast<std::size_t>(at - images.begin()));
  }
  return has;
}

namespace {
std::string in_words(std::uint64_t bits, const char* image) {
  std::string out;
  const auto add = [&](std::uint64_t of, const std::string& name) {
    if ((bits & of) != 0) out += (out.empty() ? "" : " and ") + name;
  };
  add(kBubblewrap, "bubblewrap");
  if ((bits & kDocker) != 0)
    add(kDocker, "Docker");
  else
    add(kImages, image);
  add(kNull, "the null sandbox");
  add(kUserspace, "isolation in user space (runsc)");
  add(kToolLoop, "methods of kind tool_loop");
  add(kAgentTools, "tools for agents");
  return out;
}

// Those of the bits, as people call them.
std::string things_in_words(std::uint64_t bits, const std::vector<std::string>& things,
                            const char* between) {
  std::string out;
  for (std::size_t i = 0; i < things.size(); ++i)
    if ((bits & thing_bit(i)) != 0) out += (out.empty() ? "" : between) + describe_thing(things[i]);
  return out;
}
}  // namespace

std::string describe(std::uint64_t needs, const std::vector<std::string>& things) {
  // Of images in user space the Engine runs none.
  std::string out = in_words((needs & kUserspace) != 0 ? needs & ~kImages : needs, "Docker");
  const std::string of_host = things_in_words(needs, things, " and ");
  if (!out.empty() && !of_host.empty()) out += " and ";
  out += of_host;
  return out.empty() ? "nothing special" : out;
}
std::string describe_offer(std::uint64_t has, const std::vector<std::string>& things) {
  if ((has & kFullDisk) != 0) return "nothing while its disk is full";
  constexpr std::uint64_t kAny = kBubblewrap | kImages;
  std::string unfit = describe_unfit(kAny, has);
  if (const std::string more = describe_unfit(kUserspace, has); !more.empty())
    unfit += (unfit.empty() ? "" : " and ") + more;
  // Of every worker of this release: no word of it tells one from another.
  const std::string out = in_words(has & ~kOfRelease, "stored images");
  const std::string lacks = things_in_words(~has, things, " and ");
  return (out.empty() ? "nothing special" : out) +
         (unfit.empty() ? "" : " (not " + unfit + ", which does not isolate there)") +
         (lacks.empty() ? "" : ", but not " + lacks);
}
std::string describe_unfit(std::uint64_t needs, std::uint64_t has) {
  std::string out;
  const auto add = [&](bool needed, std::uint64_t bit, const char* name) {
    if (needed && (has & bit) != 0) out += (out.empty() ? "" : " and ") + std::string(name);
  };
  const bool userspace = (needs & kUserspace) != 0,
             images = (needs & (kDocker | kImages)) != 0 && !userspace;
  add((needs & kBubblewrap) != 0, kUnfitBubblewrap, "bubblewrap");
  add(images, kUnfitDocker, "Docker");
  add(images, kUnfitOci, "OCI");
  add(userspace, kUnfitUserspace, "isolation in user space (runsc)");
  return out;
}
}  // namespace capability

std::string standing(const WorkerState& w) {
  if (!w.present) return "gone";
  if (w.quarantine != WorkerState::Quarantine::kNone) return "quarantined: " + w.reason;
  if (w.drained) return "drained";
  if (w.suspect) return "suspect";
  return w.kept ? "kept for a suspected run" : "ready";
}

template <class Change>
void Roster::change(WorkerIndex i, const Change& apply) {
  WorkerState& w = workers_[i];
  by_free_.erase({-static_cast<std::int64_t>(w.free()), i});
  free_total_ -= w.free();
  const auto what = [&w] {
    return std::tuple(w.present, w.suspect, w.drained, w.kept, w.quarantine);
  };
  const auto before = what();
  apply(w);
  if (what() != before) w.since = now_;
  free_total_ += w.free();
  by_free_.insert({-static_cast<std::int64_t>(w.free()), i});
}

WorkerIndex Roster::index_of(const WorkerId& id) {
  const auto place = unused_.empty() ? static_cast<WorkerIndex>(workers_.size()) : *unused_.begin();
  const auto [it, added] = by_name_.emplace(id, place);
  if (!added) return it->second;
  if (unused_.erase(place) == 0) workers_.emplace_back();
  workers_[place].id = id;
  by_free_.insert({0, place});
  return place;
}

void Roster::forget(WorkerIndex i) {
  WorkerState& w = workers_[i];
  PROCTOR_ASSERT(has_place(i) && !w.present && w.held == 0);
  by_free_.erase({0, i});
  by_name_.erase(w.id);
  w = WorkerState{};
  unused_.insert(i);
}

void Roster::update(WorkerIndex i, BootId boot, std::uint32_t slots, std::uint64_t has,
                    Instant now) {
  constexpr std::size_t kPastMax = 8;
  change(i, [&](WorkerState& w) {
    if (w.boot != boot && w.boot != BootId(0)) {
      w.past.push_back(w.boot);
      if (kPastMax < w.past.size()) w.past.erase(w.past.begin());
    }
    w.boot = boot;
    w.slots = slots;
    w.has = has;
    w.last_sync = now;
    w.present = true;
    w.suspect = false;
  });
}
std::optional<WorkerIndex> Roster::find(const WorkerId& id) const {
  const auto it = by_name_.find(id);
  return it == by_name_.end() ? std::nullopt : std::optional(it->second);
}
void Roster::edit(WorkerIndex i, const std::function<void(WorkerState&)>& apply) {
  change(i, apply);
}
void Roster::set_suspect(WorkerIndex i, bool suspect) {
  change(i, [&](WorkerState& w) { w.suspect = suspect; });
}
void Roster::leave(WorkerIndex i, Instant now) {
  change(i, [&](WorkerState& w) {
    w.present = false;
    w.left_at = now;
  });
}
void Roster::hold(WorkerIndex i) {
  change(i, [&](WorkerState& w) { ++w.held; });
}
void Roster::release(WorkerIndex i) {
  change(i, [&](WorkerState& w) {
    PROCTOR_ASSERT(0 < w.held);
    --w.held;
  });
}

std::optional<WorkerIndex> Roster::pick(std::uint64_t needs) const {
  for (const auto& [minus_free, i] : by_free_) {
    if (minus_free == 0) return std::nullopt;  // sorted: nobody after it has a free slot
    if ((needs & ~workers_[i].has) == 0) return i;
  }
  return std::nullopt;
}

std::optional<WorkerIndex> Roster::pick(std::uint64_t needs,
                                        const std::function<bool(const WorkerId&)>& not_at) const {
  for (const auto& [minus_free, i] : by_free_) {
    if (minus_free == 0) return std::nullopt;
    if ((needs & ~workers_[i].has) == 0 && !not_at(workers_[i].id)) return i;
  }
  return std::nullopt;
}

std::optional<WorkerIndex> Roster::pick_alone(std::uint64_t needs) const {
  std::optional<WorkerIndex> out;
  for (WorkerIndex i = 0; i < workers_.size(); ++i) {
    const WorkerState& w = workers_[i];
    if (!w.is_empty() || (needs & ~w.has) != 0) continue;
    if (w.kept) return i;
    if (!out) out = i;
  }
  return out;
}

std::optional<WorkerIndex> Roster::pick_to_keep(std::uint64_t needs) const {
  std::optional<WorkerIndex> out;
  for (WorkerIndex i = 0; i < workers_.size(); ++i) {
    const WorkerState& w = workers_[i];
    if (!w.takes_new() || w.kept || w.slots == 0 || (needs & ~w.has) != 0) continue;
    if (!out || w.held < workers_[*out].held) out = i;
  }
  return out;
}

bool Roster::anyone_has(std::uint64_t needs) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const WorkerState& w) { return w.present && (needs & ~w.has) == 0; });
}

std::uint64_t Roster::present() const {
  return static_cast<std::uint64_t>(std::ranges::count(workers_, true, &WorkerState::present));
}

std::uint64_t Roster::slots() const {
  std::uint64_t total = 0;
  for (const WorkerState& w : workers_) total += w.present ? w.slots : 0;
  return total;
}
}  // namespace proctor
