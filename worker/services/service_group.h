#pragma once
// The services beside a check: from the start of the first to the end of the last, and who is to
// blame for one that does not get ready.
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/contract/contract.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// Decisions about services, without starting any: the names they are reached by, how often a
// readiness command is asked, who is to blame for one that does not get ready.  Pure.

// /etc/hosts of all that share the network of these services: each of them is the loopback.
std::string hosts_of_services(const std::vector<std::string>& names);

// One command for /bin/sh that runs `command` until it ends with 0, with a pause between two tries.
std::string until_it_succeeds(const std::string& command, std::chrono::milliseconds pause);

// Services start one after another.  Until the first of them that runs code of the workspace has
// been started nothing the agent left has run: what fails is the image, the contract or the host.
// `workspace`: of each service, in the order of starting, whether it runs such code.
enum class Blame { kHost, kCandidate };
Blame blame_for(const std::vector<bool>& workspace, std::size_t failed);

// One service of a group.
struct ServicePlan {
  std::string name;
  SandboxSpec spec;  // its network is the group's
  ExecSpec exec;     // its time-out is the group's
  Readiness ready;
  bool workspace = false;                         // it runs what the agent left
  fs::path ready_stdout_file, ready_stderr_file;  // of a readiness command
};

// ServiceGroup: the services beside one check, from the start of the first to the end of the last.
// Each is an ordinary sandbox in the group's network, run by a thread of its own; the network, the
// sandboxes' limits and files are the caller's.
// Owns threads and sandboxes; one object, one thread, which also uses the network.
class ServiceGroup {
 public:
  using Millis = std::chrono::milliseconds;
  struct Failure {
    std::string service;
    std::string why;  // "ended with exit code 3 before it was ready"
    Blame blame = Blame::kHost;
  };
  struct End {
    std::string service;
    std::optional<Millis> ready_after;   // from its start; absent: it never was
    bool by_itself = false;              // before it was asked to
    std::optional<ExecOutcome> outcome;  // absent: its sandbox failed
    std::string error;                   // then why
  };

  ServiceGroup(SandboxEngine& engine, std::shared_ptr<SharedNetwork> network)
      : engine_(engine), network_(std::move(network)) {}
  ServiceGroup(const ServiceGroup&) = delete;
  ServiceGroup& operator=(const ServiceGroup&) = delete;
  ~ServiceGroup() { stop(); }

  // Starts them in this order, each when the one before is ready.  Nullopt: all are.  Fails with
  // what the sandboxes and the network fail with.  Once.
  Result<std::optional<Failure>> start(std::vector<ServicePlan> plans,
                                       const std::stop_token& cancel);
  // Ends all of them, with everything inside; in the order of starting.  Again: nothing.
  std::vector<End> stop();

 private:
  struct Running {
    ServicePlan plan{};
    std::unique_ptr<Sandbox> sandbox{};
    std::stop_source ask_to_end{}, ended{};
    std::optional<Result<ExecOutcome>> outcome{};  // set once, before `ended`
    std::optional<Millis> ready_after{};
    bool begun = false, asked = false;
    std::jthread thread{};  // last: it uses the others
  };
  enum class Wait { kReady, kEnded, kTooLate, kCancelled, kNotAsked };

  Status launch(ServicePlan plan);
  Result<Wait> await(Running& service, const std::stop_token& cancel);
  Result<Wait> await_begin(Running& service, const std::stop_token& cancel);
  Result<Wait> await_port(Running& service, const std::stop_token& cancel);
  Result<Wait> await_command(Running& service, const std::stop_token& cancel);
  // One of the services that were ready by a port has ended since: whose port was it?
  Result<std::optional<Failure>> not_itself(const std::vector<bool>& workspace) const;
  Result<std::string> why_not(const Running& service, Wait wait) const;

  SandboxEngine& engine_;
  std::shared_ptr<SharedNetwork> network_;
  std::mutex mutex_;
  std::condition_variable_any news_;
  std::list<Running> running_;
};
}  // namespace proctor
