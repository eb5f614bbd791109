#pragma once
// One client of a FilterProxy from its first byte to its last.  Blocking, on a thread of its own;
// ends soon after `stop` turns readable.  Internal to this room.
#include <atomic>
#include <optional>

#include "common/base/owned.h"
#include "worker/network/allow_list.h"
#include "worker/network/filter_proxy.h"

namespace proctor {

// Shared by the connections of a proxy, which outlives them.
struct ProxyContext {
  const AllowList& list;
  const FilterProxy::Options& options;
  int stop;
  std::atomic<std::uint64_t>& bytes;  // relayed so far by all of them
};

// `client` is non-blocking.  Nothing: the client left without a word.
std::optional<ProxyRecord> serve_proxy_client(const ProxyContext& context, UniqueFd client);

// An answer of ours and no more: "HTTP/1.1 403 Forbidden" with `why` as its text.
void answer_proxy_client(int client, int status, const std::string& why, int stop);

}  // namespace proctor
