#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/client.h"
#include "tests/client/fake_server.h"
#include "tests/support/process.h"

namespace firn {

// Timeout of attempts that must fail.
inline constexpr Milliseconds kShortAttempt{500};

// The kinds of calls. Every promise of the client holds for each kind.
enum class CallForm { kBlocking, kAsync };

// Fake servers and their client, which uses one server while it is healthy. Timeouts are long, so
// that a loaded machine does not change the outcome. Cases with servers that never answer set short
// ones.
class ClientRig {
 public:
  explicit ClientRig(size_t servers, CallForm form = CallForm::kBlocking) : form_(form) {
    for (size_t i = 0; i < servers; ++i) servers_.push_back(std::make_unique<FakeServer>());
    options.tls = FakeServer::Tls();
    options.deadline = Milliseconds(20'000);
    options.attempt_limit = Milliseconds(10'000);
    options.servers_max = 1;
    options.on_event = [this](const ClientEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }
  ~ClientRig() { client_.reset(); }

  // Options of the client, until its first use.
  ClientOptions options;

  // Creates the client on the first call, which must precede other threads.
  Client& client() {
    if (client_ == nullptr) {
      if (options.servers.empty()) options.servers = ListOf(servers());
      client_ = std::make_unique<Client>(options);
    }
    return *client_;
  }
  void DropClient() { client_.reset(); }

  FakeServer& server(size_t i) { return *servers_[i]; }
  std::vector<FakeServer*> servers() const {
    std::vector<FakeServer*> all;
    for (const auto& server : servers_) all.push_back(server.get());
    return all;
  }
  // Returns the number of requests for ids that all servers together have received.
  int64_t Requests() const {
    int64_t all = 0;
    for (const auto& server : servers_) all += server->requests();
    return all;
  }
  // Returns the server that the client uses.
  FakeServer& favourite() {
    for (const auto& server : servers_) {
      if (server->requests() > 0) return *server;
    }
    ADD_FAILURE() << "no server was asked";
    return *servers_[0];
  }

  Result<int64_t> GetId(CallOptions call = {}) {
    report = {};
    call.report = &report;
    if (form_ == CallForm::kBlocking) return client().GetId("order", call);
    return client().GetIdLater("order", call).get();
  }
  // Calls until each server has received a request.
  void AskEach() {
    for (const auto& server : servers_) {
      EXPECT_TRUE(Eventually(kPatience, [&] { return GetId().ok() && server->requests() > 0; }));
    }
  }
  Result<std::vector<int64_t>> GetIds(int32_t count) {
    return Ask<std::vector<int64_t>>(
        [&](const CallOptions& call) { return client().GetIds("order", count, call); },
        [&](auto done, const CallOptions& call) {
          client().GetIds("order", count, std::move(done), call);
        });
  }
  Result<std::vector<IdRun>> GetRuns(int64_t count) {
    return Ask<std::vector<IdRun>>(
        [&](const CallOptions& call) { return client().GetRuns("order", count, call); },
        [&](auto done, const CallOptions& call) {
          client().GetRuns("order", count, std::move(done), call);
        });
  }
  Result<std::string> GetText() {
    return Ask<std::string>(
        [&](const CallOptions& call) { return client().GetText("order", call); },
        [&](auto done, const CallOptions& call) {
          client().GetText("order", std::move(done), call);
        });
  }

  bool SawEvent(ClientEvent::Kind kind) {
    const std::lock_guard lock(mutex_);
    for (const ClientEvent& event : events_) {
      if (event.kind == kind) return true;
    }
    return false;
  }
  SeenServer View(const FakeServer& server) {
    for (const SeenServer& view : client().cluster().servers) {
      if (view.known.address == server.address()) return view;
    }
    return {};
  }

  CallReport report;  // report of the last call

 private:
  // Makes a call of the rig's kind, and stores its report.
  template <typename T, typename Blocking, typename Later>
  Result<T> Ask(Blocking blocking, Later later) {
    report = {};
    const CallOptions call{.report = &report};
    if (form_ == CallForm::kBlocking) return blocking(call);
    std::promise<Result<T>> promise;
    later([&promise](Result<T> got) { promise.set_value(std::move(got)); }, call);
    return promise.get_future().get();
  }

  const CallForm form_;
  std::vector<std::unique_ptr<FakeServer>> servers_;
  std::mutex mutex_;
  std::vector<ClientEvent> events_;  // under mutex_
  std::unique_ptr<Client> client_;
};

inline std::string NameOf(CallForm form) {
  return form == CallForm::kBlocking ? "Blocking" : "Async";
}
inline std::string FormName(const testing::TestParamInfo<CallForm>& info) {
  return NameOf(info.param);
}

}  // namespace firn
