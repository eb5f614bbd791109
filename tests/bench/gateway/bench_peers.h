#pragma once
// What stands beside the gateway in its bench: a provider of models that does nothing else, and a
// relay that carries bytes and reads none of them.  Each runs in the process that calls it, until
// its line ends; a thread for each connection, as the gateway has.
#include <cstdint>
#include <string>

#include "tests/bench/gateway/bench_child.h"

namespace proctor::bench {

// Tokens that the provider bills for each call.
inline constexpr std::uint64_t kBilledInput = 100, kBilledOutput = 10;
// A stream has so many events, one every so often, each with the time at which it was sent, in its
// text: other proxies write the rest anew.
inline constexpr int kStreamEvents = 100, kStreamEventMs = 20;
inline constexpr const char* kStamp = "stamp=";
inline constexpr char kStampEnd = ';';

inline constexpr const char* kProxyToken = "sk-bench";

// Says its port, then at each line how many calls it has answered.
void be_provider(const Line& line);
// Listens at `path`, leads to a port of this machine; says one line when it does.
void be_relay(const Line& line, const std::string& path, std::uint16_t port);
// LiteLLM's proxy, which is `program`, of that provider, for clients with kProxyToken.  Says its
// port when it answers.
void be_litellm(const Line& line, const std::string& program, std::uint16_t provider_port);

}  // namespace proctor::bench
