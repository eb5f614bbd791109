#include "tests/hostile/weak_runc.h"

namespace proctor::testing {
namespace {

constexpr const char* kScript = R"(#!/bin/sh
before=
for word; do
  case "$before" in
  --bundle) sed -i @CHANGES@ "$word/config.json" || exit 1 ;;
  esac
  before=$word
done
exec @REAL@ "$@"
)";

// A namespace that is not named is the runtime's.  `settings` are of a network of its own.
std::string without(const std::string& type) {
  return "-e 's/{\"type\":\"" + type + "\"},//' -e 's/,{\"type\":\"" + type +
         "\"}//' -e 's/\"sysctl\":/\"settings\":/'";
}

}  // namespace

std::string weak_runc_script() {
  return kScript;
}

std::vector<Weakness> weak_configurations() {
  const char* held = R"(["CAP_SYS_ADMIN","CAP_KILL"])";
  const std::string capabilities = std::string("{\"bounding\":") + held + ",\"effective\":" + held +
                                   ",\"permitted\":" + held + "}";
  return {
      {"no pid namespace", "the pid namespace is the host's", without("pid")},
      {"no ipc namespace", "the ipc namespace is the host's", without("ipc")},
      {"the host's network", "the net namespace is the host's", without("network")},
      {"a writable root", "its root can be written",
       "-e 's/\"readonly\":true/\"readonly\":false/'"},
      {"capabilities", "capabilities are kept",
       "-e 's/\"capabilities\":{}/\"capabilities\":" + capabilities + "/'"},
      {"the host's files", "/ of the host is to be seen at /srv",
       "-e 's#\"mounts\":\\[#&{\"destination\":\"/srv\",\"type\":\"bind\",\"source\":\"/\","
       "\"options\":[\"bind\",\"ro\"]},#'"},
  };
}

}  // namespace proctor::testing
