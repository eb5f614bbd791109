#pragma once
// What a worker does not offer because it saw that this kind of sandbox does not isolate on its
// host (`unfit:KIND` among its features), or because its disk is full.  Pure.
#include <cstdint>
#include <string>

namespace proctor::capability {

// In the bits of what a worker has, where nothing needs it.
inline constexpr std::uint64_t kUnfitBubblewrap = 0x10;
inline constexpr std::uint64_t kUnfitDocker = 0x20;
inline constexpr std::uint64_t kUnfitOci = 0x40;
inline constexpr std::uint64_t kUnfitUserspace = 0x80;
inline constexpr std::uint64_t kFullDisk = 0x2000'0000;

// Of the kinds that would run what has these needs, those that are unfit: "Docker and OCI".
std::string describe_unfit(std::uint64_t needs, std::uint64_t has);

}  // namespace proctor::capability
