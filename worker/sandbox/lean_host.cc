#include "worker/sandbox/lean_host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "worker/sandbox/devices.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
namespace {

// An overlay keeps the names that it has looked up: what is new below may not be seen through an
// old one.
constexpr std::chrono::minutes kRoomLife{5};
constexpr const char* kPackages = "/var/lib/dpkg/status";

// Of the host as rooms show it: those folders, and those in them.
std::vector<std::string> watched_of(const HostView& host) {
  std::vector<std::string> out = {kPackages};
  for (const std::string& dir : host.dirs) {
    out.push_back(dir);
    std::error_code ec;
    for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec))
      if (it->is_directory(ec)) out.push_back(it->path().string());
  }
  return out;
}

std::string stamp_of(const std::vector<std::string>& watched) {
  std::string out;
  for (const std::string& place : watched) {
    struct stat st {};
    if (::stat(place.c_str(), &st) != 0) continue;
    out.append(std::to_string(st.st_ino)).append(" ");
    out.append(std::to_string(st.st_mtim.tv_sec)).append(".");
    out.append(std::to_string(st.st_mtim.tv_nsec)).append("\n");
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<const LeanRoom>> LeanHost::make_room(const Pool& pool) {
  std::string stamp = stamp_of(pool.watched);
  PROCTOR_TRY(LeanRoom made, LeanRoom::make(pool.host, pool.scratch));
  made.stamp = std::move(stamp);
  return std::make_unique<const LeanRoom>(std::move(made));
}

Result<LeanHost> LeanHost::make(const HostView& host, const fs::path& scratch) {
  auto pool = std::make_shared<Pool>();
  pool->host = host;
  pool->scratch = scratch;
  pool->watched = watched_of(host);
  PROCTOR_TRY(auto first, make_room(*pool));
  pool->shared = first->shared;
  pool->own_devices = first->own_devices;
  HostView& view = pool->view;
  view = host;
  view.etc = LeanRoom::kEtc;
  view.init = LeanRoom::kInit;
  view.empty = LeanRoom::kEmpty;
  if (pool->own_devices) view.dev = LeanRoom::kDev;
  view.close_devices = false;
  view.terminals = pool->own_devices ? LeanRoom::kTerminals : LeanRoom::kTerminalsAlone;
  view.etc_shown.clear();
  pool->idle.push_back(std::move(first));
  return LeanHost(std::move(pool));
}

Result<std::shared_ptr<const LeanRoom>> LeanHost::take(Then then) const {
  const std::string stamp = stamp_of(pool_->watched);
  const auto oldest = std::chrono::steady_clock::now() - kRoomLife;
  std::unique_ptr<const LeanRoom> one;
  std::vector<std::unique_ptr<const LeanRoom>> old;  // unmounted when nobody waits for the lock
  {
    const std::lock_guard lock(pool_->mutex);
    while (!one && !pool_->idle.empty()) {
      auto next = std::move(pool_->idle.back());
      pool_->idle.pop_back();
      (next->stamp == stamp && oldest <= next->made ? one : old.emplace_back()) = std::move(next);
    }
  }
  if (!one) {
    PROCTOR_TRY(one, make_room(*pool_));
    // The same command line, and the same promise, for all.
    if (one->own_devices != pool_->own_devices || (pool_->shared.empty() && !one->shared.empty()))
      return Error{Errc::kUnavailable,
                   "bubblewrap: what the first sandbox was shown of this host can be shown to no "
                   "further one: " +
                       one->shared};
  }
  if (then == Then::kNobodys) return std::shared_ptr<const LeanRoom>(std::move(one));
  return std::shared_ptr<const LeanRoom>(one.release(), [pool = pool_](const LeanRoom* used) {
    const std::lock_guard lock(pool->mutex);
    pool->idle.emplace_back(used);
  });
}

Result<bool> LeanHost::show(SandboxSpec& spec, HostView& view, Shown& shown, Then then) const {
  std::size_t folders = 0, files = 0;
  Shown out;
  PROCTOR_TRY(out.room, take(then));
  const auto rename = [&](const std::string& from, bool written,
                          bool own = false) -> std::optional<std::string> {
    struct stat st {};
    if (::stat(from.c_str(), &st) != 0) return std::nullopt;
    const bool folder = S_ISDIR(st.st_mode);
    std::size_t& next = folder ? folders : files;
    if (next == LeanRoom::kPlaces) return std::nullopt;
    out.places.push_back({from, LeanRoom::place(folder ? "folder" : "file", next++), written, {}});
    Shown::Place& place = out.places.back();
    // An overlay would hide what is mounted below.
    if (own && folder && shared().empty() && mounts_below(out.room->mounted, from).empty())
      place.overlay = "lowerdir=" + place.at + ":" + LeanRoom::kEmpty;
    return place.at;
  };
  SandboxSpec inside = spec;
  HostView seen = pool_->view;
  out.user = spec.user.get();
  const auto workspace = rename(spec.workspace.string(), false);  // it may be his as it is
  if (!workspace) return false;
  inside.workspace = *workspace;
  for (SandboxMount& m : inside.mounts) {
    const auto at = rename(m.host.string(), m.writable, m.shared && !m.writable);
    if (!at) return false;
    m.host = *at;
  }
  if (spec.network && !seen.resolver.empty()) {
    const auto at = rename(seen.resolver, false);
    if (!at) return false;
    seen.resolver = *at;
  }
  spec = std::move(inside);
  view = std::move(seen);
  shown = std::move(out);
  return true;
}

bool LeanHost::enter(const Shown& shown) const {
  std::array<int, 2 * LeanRoom::kPlaces> trees{};
  // With what is mounted below, as bwrap's own binding has it.
  for (std::size_t i = 0; i < shown.places.size(); ++i) {
    const Shown::Place& place = shown.places[i];
    trees.at(i) = ::open_tree(AT_FDCWD, place.from.c_str(),
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (trees.at(i) < 0) return false;
    // What cannot be his may still be read.
    if (shown.user != nullptr && !shown.user->lend(trees.at(i)) && place.written) return false;
  }
  if (::setns(shown.room->ns.get(), CLONE_NEWNS) != 0 || ::unshare(CLONE_NEWNS) != 0) return false;
  for (std::size_t i = 0; i < shown.places.size(); ++i) {
    const Shown::Place& place = shown.places[i];
    if (::move_mount(trees.at(i), "", AT_FDCWD, place.at.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return false;
    raw::close(trees.at(i));
    // Not every file system can lie below an overlay: then it is shown as it is.
    if (!place.overlay.empty())
      (void)::mount("overlay", place.at.c_str(), "overlay", MS_RDONLY | MS_NODEV | MS_NOATIME,
                    place.overlay.c_str());
  }
  // Of this sandbox alone: nobody else's terminals are there to be opened.
  return ::mount("devpts", pool_->view.terminals.c_str(), "devpts", MS_NOSUID | MS_NOEXEC,
                 kTerminalOptions) == 0;
}

}  // namespace proctor
