#pragma once
// What decides about services without starting any: the names they are reached by, how often a
// readiness command is asked, who is to blame for one that does not get ready.  Pure.
#include <chrono>
#include <string>
#include <vector>

namespace proctor {

// /etc/hosts of all that share the network of these services: each of them is the loopback.
std::string hosts_of_services(const std::vector<std::string>& names);

// One command for /bin/sh that runs `command` until it ends with 0, with a pause between two tries.
std::string until_it_succeeds(const std::string& command, std::chrono::milliseconds pause);

// Services start one after another.  Until the first of them that runs code of the workspace has
// been started nothing the agent left has run: what fails is the image, the contract or the host.
// `workspace`: of each service, in the order of starting, whether it runs such code.
enum class Blame { kHost, kCandidate };
Blame blame_for(const std::vector<bool>& workspace, std::size_t failed);

}  // namespace proctor
