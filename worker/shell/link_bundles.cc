// CoordinatorLink: what its attempts need before they can start, and who sends it.
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/wire/asio.h"
#include "worker/shell/coordinator_link.h"

namespace proctor {

namespace asio = boost::asio;

// Starts every attempt whose bundles are here and asks for those that are not.
void CoordinatorLink::start_ready() {
  std::vector<AttemptKey> ready;
  bool missing = false;
  for (const auto& [key, local] : parts_.attempts) {
    if (!local.waiting || key.first != campaign_) continue;
    bool complete = true;
    const auto need = [&](const Digest& digest, BundleCache::Kind kind) {
      if (wanted_.contains(digest)) {
        complete = false;
      } else if (!parts_.bundles.holds({campaign_, digest})) {
        complete = false;
        missing = true;
        wanted_[digest].kind = kind;
      }
    };
    need(local.assignment.contract, BundleCache::Kind::kContract);
    need(local.assignment.method, BundleCache::Kind::kMethod);
    need(local.settings, BundleCache::Kind::kSettings);
    if (complete) ready.push_back(key);
  }
  for (const AttemptKey& key : ready) worker_.start(key);
  if (missing) want_missing();
}

void CoordinatorLink::want_missing() {
  wire::Want want;
  for (const auto& [digest, wanted] : wanted_) {
    if (!wanted.storing && want.digests.size() < limits::kBatchItems)
      want.digests.push_back(digest);
  }
  if (!want.digests.empty()) send(want);
}

void CoordinatorLink::handle(const wire::Bundle& m) {
  const auto it = wanted_.find(m.digest);
  if (it == wanted_.end() || it->second.storing) return;  // not asked for, or here already
  Wanted& wanted = it->second;
  if (m.total == 0) return bundle_complete(m.digest, m.bytes);
  // In order: the coordinator sends parts one after the other on one connection.  A gap means a
  // lost one; the next Sync asks again.
  if (m.offset == 0) wanted.parts.clear();
  if (m.offset != wanted.parts.size() || limits::kContractBundleBytes < m.total) return;
  wanted.parts += m.bytes;
  if (m.total < wanted.parts.size()) {
    wanted.parts.clear();
  } else if (wanted.parts.size() == m.total) {
    bundle_complete(m.digest, std::exchange(wanted.parts, {}));
  }
}

void CoordinatorLink::bundle_complete(const Digest& digest, std::string bytes) {
  Wanted& wanted = wanted_.at(digest);
  wanted.storing = true;
  parts_.on_disk(
      [this, campaign = campaign_, digest, kind = wanted.kind, bytes = std::move(bytes)] {
        auto stored = std::make_shared<Status>(parts_.bundles.put(kind, {campaign, digest}, bytes));
        asio::post(parts_.io, [this, campaign, digest, stored] {
          if (campaign != campaign_) return;
          if (stored->ok()) {
            wanted_.erase(digest);
            return start_ready();
          }
          const Error& e = stored->error();
          log::warn("bundle " + digest.short_hex() + ": " + e.detail);
          if (e.code == Errc::kInvalid) return decline(digest, e.detail);
          if (const auto again = wanted_.find(digest); again != wanted_.end())
            again->second.storing = false;  // asked for again with the next Sync
        });
      });
}

// Its bytes are what was sent, and mean nothing to this build: a newer one wrote it.
void CoordinatorLink::decline(const Digest& digest, const std::string& detail) {
  wanted_.erase(digest);
  const std::string why =
      "worker " + std::string(kVersion) + " cannot read what the run needs: " + detail;
  for (auto& [key, local] : parts_.attempts) {
    const wire::Assignment& a = local.assignment;
    if (!local.waiting || key.first != campaign_) continue;
    if (a.contract != digest && a.method != digest && local.settings != digest) continue;
    local.waiting = false;
    parts_.on_disk([this, key = key, input = parts_.input_of(key, local), why] {
      auto entry = std::make_shared<Result<Spool::Entry>>(parts_.executor.decline(input, why));
      asio::post(parts_.io, [this, key, entry] { worker_.ended(key, std::move(*entry)); });
    });
  }
}

}  // namespace proctor
