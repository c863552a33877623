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

// The ways in which an honest client can be awkward.
struct Manner {
  const char* name = "";
  int in_flight = 32;             // calls that are sent before the first of them is answered
  int32_t count = 1'000;          // ids per call; some calls request a few more
  size_t send_bytes = 64 * 1024;  // maximum per send
  size_t read_bytes = 64 * 1024;  // maximum per read
  int window_bytes = 0;           // of its receive buffer; 0: the kernel's default
  int segment_bytes = 0;          // of a packet to it; see Channel
  size_t pause_each_bytes = 0;    // number of bytes read between two pauses; 0: no pauses
  Milliseconds pause{0};
  bool bursts = false;            // sends again only when everything was answered
  bool finishes_sending = false;  // shuts down its side after its last call
};

// Readers that pause or are slow, small windows, bursts, single bytes, half-closed connections.
const std::vector<Manner>& AwkwardManners();

// Returns the manner limited to about 10,000 ids a second, for use beside a load that must not be
// disturbed.
Manner Modest(Manner manner);

// One such client with its own thread, from construction to destruction: conversations of a number
// of calls, each over a new connection, one after another. It compares every answer with its call
// and keeps all ids. A connection that ends early counts as lost, and the next server is tried.
class AwkwardClient {
 public:
  struct Options {
    std::vector<int> ports;  // on loopback
    size_t first = 0;        // index of the first server
    std::string tls_ca{};    // file with the servers' authority; empty: no TLS
    std::string tag = "default";
    TongueName tongue = TongueName::kThriftBinary;
    Manner manner{};
    // Reads nothing until this returns true; it is called repeatedly. Empty: reads at once.
    std::function<bool()> may_read{};
    int calls = 100;        // calls per conversation
    int conversations = 0;  // number of complete conversations; 0: until Stop
  };

  explicit AwkwardClient(Options options);
  ~AwkwardClient();  // stops
  AwkwardClient(const AwkwardClient&) = delete;
  AwkwardClient& operator=(const AwkwardClient&) = delete;

  // Ends its conversation at once.
  void Stop();
  // Waits until its conversations are complete.
  void Join();

  // May be called by any thread, at any time.
  int64_t answered() const { return answered_; }  // with ids

  // After Stop or Join.
  std::string name() const;
  const std::vector<int64_t>& ids() const { return ids_; }
  const std::vector<std::string>& faults() const { return faults_; }  // the first ten
  int64_t refused() const { return refused_; }
  int64_t lost() const { return lost_; }  // connections that ended early or could not be opened

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
