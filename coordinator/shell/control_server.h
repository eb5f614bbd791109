#pragma once
// Both ends of the control socket.
//
// ControlServer: the socket at which a running coordinator listens to its operator, beside the
// journal.  Lines in, lines out; what they mean is the handler's.  Each client has one question
// open at a time: the next line is not read before the answer is written.
//
// Only root and the user the coordinator runs as are heard (the socket lies in a folder of mode
// 0700, and the kernel's word on the peer is asked as well).  Clients are bounded in number, in the
// length of a line and in time; who stalls or floods is cut off and delays nobody.
// All on one Asio loop: open, handler and destructor on its thread.
// Errors: kUnavailable, the socket cannot be had.
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/shell/control_protocol.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace proctor {
class ControlServer {
 public:
  static constexpr std::size_t kClientsMax = 32;
  struct Times {
    std::chrono::milliseconds line{10'000};    // from the connection, or the last answer, to a line
    std::chrono::milliseconds answer{60'000};  // until somebody says that nothing is known
    std::chrono::milliseconds write{10'000};   // an answer lies there unread
  };
  class Reply {
   public:
    // Any time later, once, on the loop; a line with its end.  Nobody hears it when the client has
    // gone.
    void operator()(std::string line) const { say_(std::move(line)); }
    // A line in front of the answer, at once.  False: the client has hung up, and will never hear
    // of this question again.  True: what it hears next, even if it hangs up now, is this line.
    bool first(std::string_view line) const { return first_(line); }

   private:
    friend class ControlServer;
    std::function<void(std::string)> say_;
    std::function<bool(std::string_view)> first_;
  };
  // A line without its end.
  using Handler = std::function<void(std::string line, Reply reply)>;

  // Replaces a socket that a killed coordinator left: whoever calls this holds the journal's lock.
  static Result<std::unique_ptr<ControlServer>> open(boost::asio::io_context& io,
                                                     const fs::path& socket, Handler handler,
                                                     Times times);
  static Result<std::unique_ptr<ControlServer>> open(boost::asio::io_context& io,
                                                     const fs::path& socket, Handler handler) {
    return open(io, socket, std::move(handler), Times());
  }
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();  // cuts everyone off and removes the socket

 private:
  class Client;
  struct Listener;
  ControlServer(boost::asio::io_context& io, fs::path socket, Handler handler, Times times);
  Status listen();
  void accept();
  void admit(const std::shared_ptr<Client>& client);

  std::unique_ptr<Listener> listener_;
  fs::path socket_;
  Handler handler_;
  Times times_;
  std::set<std::shared_ptr<Client>> clients_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // told to what the loop still holds
};

// A connected socket at `socket`, however long its path is.  kNotFound: nobody made one;
// kUnavailable: nobody answers there.
Result<int> connect_control(const fs::path& socket);

// The operator's end of the socket: one question and its answer.
//
// An act that nobody takes up in time is withdrawn, and then it is never done: the coordinator says
// that it takes it up before it does (ControlRequest::taken), and the kernel decides whether that
// word or our hanging up came first.  So a coordinator that hangs, or is stopped, does nothing
// later of which its operator was told that it was not done.  Any thread; blocks as long as the
// patience says.

struct ControlPatience {
  std::chrono::milliseconds notice{2'000};     // of silence, until `waits` is called, once
  std::chrono::milliseconds taken{10'000};     // until an act is taken up, a question answered
  std::chrono::milliseconds answered{75'000};  // longer than the server lets a question lie
};

struct ControlHeard {
  enum class What {
    kAnswer,
    kNothing,  // it was withdrawn: nothing is done, and nothing will be
    kTaken,    // it was taken up, and how it ended nobody has said
  };
  What what = What::kNothing;
  ControlAnswer answer{};  // of kAnswer
  bool ended = false;      // the other end has gone, and not our patience
};

// Sends the request, as an act unless it only asks (kActExplain).  Errors are connect_control()'s;
// kInvalid: it is too long; kCorrupt: the answer is none.
Result<ControlHeard> call_control(const fs::path& socket, ControlRequest request,
                                  const ControlPatience& patience,
                                  const std::function<void()>& waits);
}  // namespace proctor
