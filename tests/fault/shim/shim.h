#pragma once
// What the preloaded libraries of this folder share: finding the real function, and only acting in
// the chosen program.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace shim {

// The function of this name that would have been called without us.
template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

inline std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace shim

// Inside a replacement of `name`: a static pointer to the real one.
#define SHIM_REAL(name) static auto* const real_##name = shim::real(&::name, #name)
