// Runs the C++ client, controlled by standard input and output as ../README.md describes.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/local_ranges.h"
#include "common/json/json.h"
#include "tests/conformance/drivers/wrong_calls.h"

namespace firn {
namespace {

using Words = std::map<std::string, std::string, std::less<>>;

std::string Word(const Words& words, std::string_view key, std::string other = {}) {
  const auto found = words.find(key);
  return found == words.end() ? other : found->second;
}

int Number(const Words& words, std::string_view key, int other) {
  const std::string word = Word(words, key);
  return word.empty() ? other : std::stoi(word);
}

std::string_view NameOf(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::kConnectTimeout:
      return "connect timeout";
    case AttemptEnd::kTimeout:
      return "timeout";
    case AttemptEnd::kBroken:
      return "broken";
    default:
      return AttemptEndName(end);
  }
}

// Returns the outcome of a failed call as JSON. If the client itself refuses a call, there is no
// server's refusal, so derives from the code the refusal that a server would send.
Json Told(const Status& status, const CallReport& report) {
  const bool final = status.code() != Code::kUnavailable;
  std::string reason = report.refusal ? std::string(ReasonName(*report.refusal)) : "";
  if (reason.empty() && status.code() == Code::kInvalid) reason = "BAD_REQUEST";
  Json attempts = Json::array();
  for (const CallAttempt& one : report.attempts) {
    attempts.push_back({{"server", one.server},
                        {"end", NameOf(one.end)},
                        {"reason", one.refusal ? ReasonName(*one.refusal) : ""}});
  }
  return {{"kind", final ? "refused" : "unavailable"},
          {"failure", status.message()},
          {"reason", reason},
          {"retry_after_ms", report.retry_after.count()},
          {"attempts", attempts}};
}

// Returns whether calls are asynchronous.
bool Asynchronous() {
  static const char* const form = std::getenv("FIRN_CLIENT");
  return form != nullptr && std::string_view(form) == "async";
}

// Starts an asynchronous call, and waits for its outcome.
template <typename T, typename Start>
Result<T> Await(Start start) {
  std::promise<Result<T>> outcome;
  start([&outcome](Result<T> got) { outcome.set_value(std::move(got)); });
  return outcome.get_future().get();
}

Result<int64_t> GetId(Client& client, const std::string& tag, const CallOptions& call) {
  if (!Asynchronous()) return client.GetId(tag, call);
  return Await<int64_t>([&](auto done) { client.GetId(tag, std::move(done), call); });
}

Result<std::vector<int64_t>> GetIds(Client& client, const std::string& tag, int count,
                                    const CallOptions& call) {
  using Ids = std::vector<int64_t>;
  if (!Asynchronous()) return client.GetIds(tag, count, call);
  return Await<Ids>([&](auto done) { client.GetIds(tag, count, std::move(done), call); });
}

Result<std::string> GetText(Client& client, const std::string& tag, const CallOptions& call) {
  if (!Asynchronous()) return client.GetText(tag, call);
  return Await<std::string>([&](auto done) { client.GetText(tag, std::move(done), call); });
}

// Threads that make calls until they are stopped.
class Load {
 public:
  Load(Client& client, std::string tag, std::string file, int threads)
      : client_(client), tag_(std::move(tag)), file_(std::move(file)) {
    for (int i = 0; i < threads; ++i) works_.push_back(std::make_unique<Work>());
    for (auto& work : works_) work->thread = std::thread([this, &work] { Run(*work); });
  }

  int64_t Least() const {
    int64_t least = INT64_MAX;
    for (const auto& work : works_) least = std::min<int64_t>(least, work->calls);
    return least;
  }

  Json End() {
    ending_ = true;
    Json told = {{"answered", 0}, {"failed", 0}};
    int64_t answered = 0, failed = 0, longest = 0;
    std::ofstream out(file_);
    for (const auto& work : works_) {
      work->thread.join();
      answered += static_cast<int64_t>(work->ids.size());
      failed += work->failed;
      longest = std::max<int64_t>(longest, work->longest.count());
      for (const auto& [name, value] : work->first_failure.members()) told[name] = value;
      for (const int64_t id : work->ids) out << id << "\n";
    }
    told["answered"] = answered;
    told["failed"] = failed;
    told["longest_us"] = longest;
    return told;
  }

 private:
  struct Work {
    std::atomic<int64_t> calls = 0;
    int64_t failed = 0;
    std::vector<int64_t> ids;
    std::chrono::microseconds longest{0};
    Json first_failure = Json::object();
    std::thread thread;
  };

  void Run(Work& work) {
    while (!ending_) {
      CallReport report;
      const auto began = SystemClock().BootMicros();
      const Result<int64_t> id = GetId(client_, tag_, {.report = &report});
      work.longest = std::max(work.longest, SystemClock().BootMicros() - began);
      if (id.ok()) {
        work.ids.push_back(*id);
      } else if (work.failed++ == 0) {
        work.first_failure = Told(id.status(), report);
      }
      ++work.calls;
    }
  }

  Client& client_;
  const std::string tag_, file_;
  std::atomic<bool> ending_ = false;
  std::vector<std::unique_ptr<Work>> works_;
};

class Driver {
 public:
  Json Do(const std::string& verb, const Words& words) {
    if (verb == "open") return Open(words);
    if (verb == "id" || verb == "ids" || verb == "text") return Call(verb, words);
    if (verb == "view") return View();
    if (verb == "burst") return Burst(Number(words, "calls", 1), Word(words, "tag"));
    if (verb == "wrong") return WrongCalls(*client_);
    if (verb == "seen") return Seen();
    if (verb == "start") return Start(words);
    if (verb == "so_far") return {{"calls", load_->Least()}};
    if (verb == "stop") return std::exchange(load_, nullptr)->End();
    if (verb == "close") client_.reset();
    return Json::object();
  }

 private:
  Json Open(const Words& words) {
    ClientOptions options;
    options.servers = Word(words, "servers");
    options.cluster_uuid = Word(words, "cluster_uuid");
    options.deadline = Milliseconds(Number(words, "deadline_ms", 200));
    options.attempt_limit = Milliseconds(Number(words, "attempt_limit_ms", 80));
    options.attempts_max = Number(words, "attempts_max", 3);
    options.connections = Number(words, "connections_max", 2);
    options.servers_max = Number(words, "servers_max", 16);
    if (words.contains("rack")) options.rack = static_cast<uint32_t>(Number(words, "rack", 0));
    if (Word(words, "on_failure") == "failfast") options.on_failure = FailureMode::kFailfast;
    if (words.contains("tls_ca")) {
      options.tls = {.ca = Word(words, "tls_ca"),
                     .cert = Word(words, "tls_cert"),
                     .key = Word(words, "tls_key"),
                     .name = Word(words, "tls_name")};
    }
    std::vector<LocalTag> local;
    if (words.contains("segment")) local.push_back(LocalTag::Segment(Word(words, "segment")));
    if (words.contains("snowflake")) local.push_back(LocalTag::Snowflake(Word(words, "snowflake")));
    if (!local.empty()) options.local_ranges = LocalRanges(local);
    options.on_event = [this,
                        throws = Word(words, "on_event") == "throws"](const ClientEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.emplace_back(EventName(event.kind));
      if (throws) throw std::runtime_error("as the case says");
    };
    client_.reset();
    events_.clear();
    client_ = std::make_unique<Client>(options);
    const Status status = client_->status();
    if (status.ok()) return Json::object();
    return {{"kind", "invalid"}, {"failure", status.message()}};
  }

  // Makes a call and returns its ids.
  Result<std::vector<int64_t>> Ask(const std::string& verb, const Words& words,
                                   const CallOptions& call) {
    const std::string tag = Word(words, "tag");
    if (verb == "ids") return GetIds(*client_, tag, Number(words, "count", 1), call);
    if (verb == "text") {
      const Result<std::string> text = GetText(*client_, tag, call);
      if (!text.ok()) return text.status();
      return std::vector<int64_t>{std::stoll(*text)};
    }
    const Result<int64_t> id = GetId(*client_, tag, call);
    if (!id.ok()) return id.status();
    return std::vector<int64_t>{*id};
  }

  Json Call(const std::string& verb, const Words& words) {
    std::vector<int64_t> ids;
    int answered = 0, failed = 0;
    Json first = Json::object();
    const auto work = [&] {
      for (int i = 0; i < Number(words, "times", 1); ++i) {
        CallReport report;
        CallOptions call{.report = &report};
        if (words.contains("deadline_ms")) {
          call.deadline = Milliseconds(Number(words, "deadline_ms", 0));
        }
        const Result<std::vector<int64_t>> got = Ask(verb, words, call);
        const std::lock_guard lock(mutex_);
        if (got.ok()) {
          ++answered;
          ids.insert(ids.end(), got->begin(), got->end());
        } else if (failed++ == 0) {
          first = Told(got.status(), report);
        }
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < Number(words, "threads", 1); ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    first["answered"] = answered;
    first["failed"] = failed;
    first["ids"] = ids;
    return first;
  }

  // Starts this number of calls at once.
  Json Burst(int calls, const std::string& tag) {
    const auto began = SystemClock().BootMicros();
    std::mutex mutex;
    std::condition_variable all_ended;
    std::vector<int64_t> ids;
    int failed = 0;
    Json told = Json::object();
    for (int i = 0; i < calls; ++i) {
      client_->GetId(tag, [&](Result<int64_t> id) {
        const std::lock_guard lock(mutex);
        if (id.ok()) {
          ids.push_back(*id);
        } else if (failed++ == 0) {
          told = Told(id.status(), {});
        }
        if (static_cast<int>(ids.size()) + failed == calls) all_ended.notify_one();
      });
    }
    std::unique_lock lock(mutex);
    all_ended.wait(lock, [&] { return static_cast<int>(ids.size()) + failed == calls; });
    const auto took = SystemClock().BootMicros() - began;
    told["answered"] = ids.size();
    told["failed"] = failed;
    told["ids"] = ids;
    told["took_ms"] = static_cast<double>(took.count()) / 1000;
    return told;
  }

  Json View() {
    Json servers = Json::object();
    for (const SeenServer& one : client_->cluster().servers) {
      servers[one.known.address] = HealthName(one.health);
    }
    return {{"servers", servers}};
  }

  Json Seen() {
    const std::lock_guard lock(mutex_);
    return {{"events", events_}};
  }

  Json Start(const Words& words) {
    load_ = std::make_unique<Load>(*client_, Word(words, "tag"), Word(words, "file"),
                                   Number(words, "threads", 4));
    return Json::object();
  }

  std::mutex mutex_;
  std::vector<std::string> events_;  // under mutex_
  std::unique_ptr<Client> client_;
  std::unique_ptr<Load> load_;
};

Words WordsOf(std::istringstream& line) {
  Words words;
  for (std::string word; line >> word;) {
    const size_t mark = word.find('=');
    words[word.substr(0, mark)] = mark == std::string::npos ? "" : word.substr(mark + 1);
  }
  return words;
}

int Main() {
  Driver driver;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string verb;
    line >> verb;
    const Words words = WordsOf(line);
    std::cout << JsonText(driver.Do(verb, words)) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace firn

int main() { return firn::Main(); }
