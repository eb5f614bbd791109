// What a hostile agent tries, and what must come of it.
#include "worker/selftest/containment.h"

namespace proctor {

using std::chrono::milliseconds;

const std::vector<ContainmentCase>& containment_cases() {
  using End = ExecOutcome::End;
  static const std::vector<ContainmentCase> all = [] {
    std::vector<ContainmentCase> c;
    const auto add = [&](const char* name, const char* promise, std::string attack) -> auto& {
      c.push_back({name, promise, std::move(attack), {End::kExited}, true});
      return c.back();
    };
    // Whose end the sandbox must bring about.
    const auto stopped = [&](const char* name, const char* promise, std::string attack,
                             const char* limit, std::vector<End> ends) -> auto& {
      ContainmentCase& one = add(name, promise, std::move(attack));
      one.ends = std::move(ends);
      one.done = false;
      one.limit = limit;
      return one;
    };
    // ---- harmless on any host
    {
      ContainmentCase& one =
          add("isolation", "namespaces, rights, mounts and user are as promised, seen by the host",
              "stand");
      one.proof = one.harmless = true;
    }
    add("other-processes", "processes of the host are not to be seen", "other-processes").harmless =
        true;
    add("network", "nothing leaves by any network, and the host's loopback is not there", "network")
        .harmless = true;
    add("odd-names", "terminal escapes in names and output end nothing", "odd-names").harmless =
        true;
    // ---- what would mount, kill, set and fill where nothing is in its way
    add("host-files", "files, devices and sockets of the host are out of reach", "host-files");
    add("sandbox-init", "who reports the exit code cannot be traced, read or written",
        "sandbox-init");
    add("privileges", "no capability, namespace, mount, user or higher limit is to be had",
        "privileges");
    add("kernel-calls", "clocks, keyrings, modules, logs and the like are refused", "kernel-calls");
    add("unlisted-calls", "no system call is to be had but those of the published list",
        "unlisted-calls");
    add("file-size", "no single file is larger than the disk limit, with or without holes",
        "one-large-file mib=8")
        .limit = "file";
    add("descriptors", "open files are limited", "exhaust-descriptors").limit = "open_files";
    {
      ContainmentCase& one = add("tmp-in-memory", "what fills /tmp and shared memory is counted",
                                 "fill-memory-folders mib=256");
      one.ends = {End::kExited, End::kMemory, End::kSignalled};
      one.done = false;
      one.limit = "memory_files";
    }
    for (const auto& [name, attack] :
         {std::pair{"memory-tcp", "hold-sockets kind=tcp mib=200 allowed=72"},
          std::pair{"memory-udp", "hold-sockets kind=udp mib=200 allowed=72"}}) {
      ContainmentCase& one =
          stopped(name, "what sockets hold of memory is limited", attack, "memory_sockets",
                  {End::kExited, End::kMemory, End::kTimedOut});
      one.memory_mib = 64;
    }
    for (const auto& [name, attack] :
         {std::pair{"memory-netlink", "hold-sockets kind=netlink mib=200 allowed=16"},
          std::pair{"memory-datagrams", "hold-sockets kind=begun mib=24 allowed=16"}}) {
      ContainmentCase& one = stopped(name, "... and what no control group counts of it", attack,
                                     "disk", {End::kMemory, End::kExited, End::kTimedOut});
      one.memory_mib = 64;
    }
    stopped("kill-all", "signals reach nothing but the attack itself", "kill-all", nullptr,
            {End::kSignalled, End::kExited});
    stopped("fork-bomb", "processes beyond the limit are not to be had", "fork-bomb most=66",
            "processes", {End::kTimedOut})
        .timeout = milliseconds(700);
    {
      ContainmentCase& one = stopped("memory-bomb", "memory beyond the limit ends the command",
                                     "memory-bomb", "memory", {End::kMemory, End::kSignalled});
      one.memory_mib = 64;
    }
    {
      ContainmentCase& one =
          stopped("memory-by-many", "memory of all processes together is limited",
                  "memory-bomb children=8 mib=32", "memory_sum",
                  {End::kMemory, End::kSignalled, End::kExited, End::kTimedOut});
      one.memory_mib = 64;
      one.timeout = milliseconds(1'500);
    }
    {
      ContainmentCase& one = stopped("cpu", "CPU seconds of all processes together are limited",
                                     "spin processes=4", "cpu", {End::kCpu});
      one.cpu = milliseconds(1'000);
    }
    stopped("disk-full", "bytes on disk beyond the limit end the command", "fill-files mib=4",
            "disk", {End::kDisk});
    stopped("disk-behind-descriptors", "... whatever else there is to be looked at",
            "fill-files mib=4 holders=25 most=1024", "disk", {End::kDisk});
    stopped("empty-files", "files on disk beyond the limit end the command", "fill-empty", "disk",
            {End::kDisk});
    stopped("deep-folders", "folders deeper than any program can follow are cleared away",
            "deep-folders depth=100000", nullptr, {End::kExited, End::kDisk});
    add("output", "output is cut and counted, lines without an end too", "output-flood mib=48");
    stopped("survivors-at-exit",
            "detached, deaf, stopped and fleeing processes end with the command", "survivors",
            nullptr, {End::kExited});
    stopped("survivors-at-timeout", "... and with its time limit, within two seconds",
            "survivors stay=1", nullptr, {End::kTimedOut})
        .timeout = milliseconds(500);
    return c;
  }();
  return all;
}

}  // namespace proctor
