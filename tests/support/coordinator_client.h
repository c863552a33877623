#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/time/clock.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A coordinator for tests: each verb waits for its answer, by dispatching, and records events that
// arrive meanwhile. One thread.
class CoordinatorClient {
 public:
  static constexpr Milliseconds kPatience{20'000};

  // Takes the coordinator; does not wait.
  explicit CoordinatorClient(std::unique_ptr<Coordinator> coordinator);

  // A busy machine may lose a connection at any time. After this call a verb that was not done
  // because of that waits for a connection and is repeated; a write of unknown outcome is not.
  void RepeatWhileDisconnected() { repeats_ = true; }

  // Throws, which fails the test and not its program, when no answer comes within kPatience, or
  // when repeating does not help within three times as long.
  Result<Node> Read(const std::string& path);
  Result<std::vector<std::string>> List(const std::string& path);
  Status Sync(const std::string& path = "/");
  Status PrepareRoot();
  WriteOutcome Multi(std::vector<Write> writes);

  // Makes a single write.
  WriteOutcome Create(const std::string& path, const std::string& data,
                      Lifetime lifetime = Lifetime::kPersistent);
  WriteOutcome Set(const std::string& path, const std::string& data, int64_t version);
  WriteOutcome Erase(const std::string& path, int64_t version = Write::kAnyVersion);

  // Read or List with a watch; each notification adds one to `notices`.
  Result<Node> ReadAndWatch(const std::string& path);
  Result<std::vector<std::string>> ListAndWatch(const std::string& path);

  // Dispatches until `done` returns true; false after a timeout.
  bool Await(const std::function<bool()>& done, Milliseconds patience = kPatience);
  bool AwaitSession(Milliseconds patience = kPatience);
  bool AwaitEvent(SessionEvent::Kind kind, Milliseconds patience = kPatience);

  bool Heard(SessionEvent::Kind kind) const;
  Coordinator& operator*() { return *coordinator_; }
  Coordinator* operator->() { return coordinator_.get(); }
  void Close() { coordinator_.reset(); }

  std::vector<SessionEvent> events;
  int notices = 0;

 private:
  template <typename T, typename Ask>
  T Answer(Ask ask);

  std::unique_ptr<Coordinator> coordinator_;
  bool repeats_ = false;
};

}  // namespace firn
