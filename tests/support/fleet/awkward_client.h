#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/units.h"
#include "tests/support/fleet/channel.h"
#include "tests/support/fleet/tongue.h"

namespace firn {

// How an honest client may be awkward.
struct Manner {
  const char* name = "";
  int in_flight = 32;             // calls that are asked before the first of them is answered
  int32_t count = 1'000;          // ids of a call; some calls ask for a few more
  size_t send_bytes = 64 * 1024;  // at once, at most
  size_t read_bytes = 64 * 1024;  // at once, at most
  int window_bytes = 0;           // of its receive buffer; 0: as the kernel likes it
  int segment_bytes = 0;          // of a packet to it; see Channel
  size_t pause_each_bytes = 0;  // reads nothing for a while whenever it has read so many; 0: never
  Milliseconds pause{0};
  bool bursts = false;            // asks again only when everything has been answered
  bool finishes_sending = false;  // shuts its side behind its last call
};

// Readers that pause or are slow, small windows, bursts, byte for byte, half-closed connections.
const std::vector<Manner>& AwkwardManners();

// The same manner, for use beside a load that it is not to outdo: some ten thousand ids a second.
Manner Modest(Manner manner);

// One such client in a thread of its own, from its making to its end: conversations over a
// connection each, of so many calls, one after another. It compares every answer with its call and
// keeps all ids. A connection that ends early is counted as lost, and the next server is tried.
class AwkwardClient {
 public:
  struct Options {
    std::vector<int> ports;  // on loopback
    size_t first = 0;        // which of them to begin with
    std::string tls_ca{};    // the file of the servers' authority; empty: no TLS
    std::string tag = "default";
    TongueName tongue = TongueName::kThriftBinary;
    Manner manner{};
    // Reads nothing before this says true, which it is asked now and then. Empty: it reads at once.
    std::function<bool()> may_read{};
    int calls = 100;        // of a conversation
    int conversations = 0;  // that are held to their end; 0: until Stop
  };

  explicit AwkwardClient(Options options);
  ~AwkwardClient();  // stops
  AwkwardClient(const AwkwardClient&) = delete;
  AwkwardClient& operator=(const AwkwardClient&) = delete;

  // Ends it in the middle of whatever it does.
  void Stop();
  // Waits until it has held its conversations.
  void Join();

  // Any thread, any time.
  int64_t answered() const { return answered_; }  // with ids

  // After Stop or Join.
  std::string name() const;
  const std::vector<int64_t>& ids() const { return ids_; }
  const std::vector<std::string>& faults() const { return faults_; }  // the first ten
  int64_t refused() const { return refused_; }
  int64_t lost() const { return lost_; }  // connections that ended early, or were not to be had

 private:
  class Conversation;

  void Run();
  void Blame(const std::string& fault);

  const Options options_;
  std::vector<int64_t> ids_;
  std::vector<std::string> faults_;
  int64_t refused_ = 0, lost_ = 0;
  std::atomic<int64_t> answered_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace firn
