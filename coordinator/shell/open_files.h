#pragma once
// How many files this process may have open, which bounds how many workers may be connected.
#include <cstddef>

namespace proctor {

// The soft limit becomes the hard one: shells often leave it at 1,024, and each worker takes one.
void raise_open_files();

// What the process may open at all.
std::size_t open_files_limit();
// Connections that fit beside what is open now and what the coordinator opens in passing: archives
// that are unpacked, clients of the control socket, a new connection to Redis.
std::size_t connections_that_fit();

}  // namespace proctor
