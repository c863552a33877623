// Tests servers that are listed by name. This program replaces the system's getaddrinfo.

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/client/client_rig.h"
#include "tests/support/process.h"

namespace firn {
namespace {

// The names that can be resolved. Never destroyed: a lookup may be in progress when the program
// ends.
class Names {
 public:
  static Names& Get() {
    static Names* const names = new Names;
    return *names;
  }
  void Set(const std::string& name, std::vector<std::string> hosts) {
    const std::lock_guard lock(mutex_);
    hosts_[name] = std::move(hosts);
  }
  // Makes lookups wait for their answer while `held`.
  void Hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  int asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::vector<std::string> Find(const std::string& name) {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.wait(lock, [this] { return !held_; });
    const auto found = hosts_.find(name);
    return found == hosts_.end() ? std::vector<std::string>() : found->second;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::string>> hosts_;
  bool held_ = false;
  int asked_ = 0;
};

}  // namespace
}  // namespace firn

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo*,
                           addrinfo** result) {
  struct Entry {
    addrinfo info;
    sockaddr_in address;
  };
  addrinfo** last = result;
  *result = nullptr;
  for (const std::string& host : firn::Names::Get().Find(node)) {
    auto* entry = static_cast<Entry*>(std::calloc(1, sizeof(Entry)));
    entry->address.sin_family = AF_INET;
    entry->address.sin_port = htons(static_cast<uint16_t>(std::atoi(service)));
    inet_pton(AF_INET, host.c_str(), &entry->address.sin_addr);
    entry->info.ai_family = AF_INET;
    entry->info.ai_socktype = SOCK_STREAM;
    entry->info.ai_addrlen = sizeof entry->address;
    entry->info.ai_addr = reinterpret_cast<sockaddr*>(&entry->address);
    *last = &entry->info;
    last = &entry->info.ai_next;
  }
  return *result == nullptr ? EAI_NONAME : 0;
}

extern "C" void freeaddrinfo(addrinfo* list) noexcept {
  while (list != nullptr) {
    addrinfo* const next = list->ai_next;
    std::free(list);
    list = next;
  }
}

namespace firn {
namespace {

// Addresses of this machine without a fake server.
const std::string kDeaf = "127.0.0.2", kAlsoDeaf = "127.0.0.3";
const std::string kHost = "127.0.0.1";

class NamesTest : public testing::TestWithParam<CallForm> {
 protected:
  NamesTest() : rig_(1, GetParam()) {
    const std::string address = rig_.server(0).address();
    rig_.options.servers = "list://shop" + address.substr(address.find(':'));
  }
  ~NamesTest() override { Names::Get().Hold(false); }

  ClientRig rig_;
};

TEST_P(NamesTest, AServerIsReachedAtAnyAddressOfItsName) {
  Names::Get().Set("shop", {kDeaf, kAlsoDeaf, kHost});
  const Result<int64_t> id = rig_.GetId();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(rig_.report.attempts.size(), 1u);
  EXPECT_EQ(rig_.client().counters().connects_failed, 0u);
}

// A second address of the name, which accepts connections but never answers.
class Listener {
 public:
  Listener(const std::string& host, int port)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
  }
  ~Listener() { close(fd_); }
  int taken() {
    for (int one; (one = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ++taken_) close(one);
    return taken_;
  }

 private:
  const int fd_;
  int taken_ = 0;
};

TEST_P(NamesTest, ConnectionsAreSpreadOverTheAddressesOfAName) {
  FakeServer& server = rig_.server(0);
  Listener other(kDeaf, std::stoi(server.address().substr(server.address().find(':') + 1)));
  Names::Get().Set("shop", {kHost, kDeaf});
  rig_.options.attempt_limit = Milliseconds(500);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    server.CloseConnections();
    static_cast<void>(rig_.GetId());
    return other.taken() > 0 && server.connections() > 0;
  }));
}

TEST_P(NamesTest, ResolvesTheOnlyServerAgainWhenNoneOfItsAddressesAccepts) {
  Names::Get().Set("shop", {kDeaf});
  const Result<int64_t> id = rig_.GetId();
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(rig_.report.attempts.back().end, AttemptEnd::kUnreachable) << id.status();
  Names::Get().Set("shop", {kHost});
  EXPECT_TRUE(Eventually(kPatience, [this] { return rig_.GetId().ok(); }));
}

TEST_P(NamesTest, DestructionDoesNotWaitForALookup) {
  Names::Get().Hold(true);
  const int before = Names::Get().asked();
  EXPECT_FALSE(rig_.GetId({.deadline = Milliseconds(100)}).ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return Names::Get().asked() > before; }));
  const auto gone = std::async(std::launch::async, [this] { rig_.DropClient(); });
  EXPECT_EQ(gone.wait_for(kPatience), std::future_status::ready);
  Names::Get().Hold(false);
}

INSTANTIATE_TEST_SUITE_P(AllForms, NamesTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
