#include "server/node/embedded.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/fork.h"
#include "common/log/log.h"
#include "common/net/endpoint.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/state/owner.h"
#include "server/issue/patient_caller.h"
#include "server/node/issuing_node.h"
#include "server/node/open_node.h"
#include "server/plugins/built_in.h"

namespace firn {
namespace {

constexpr std::string_view kAddress = "127.0.0.1";  // only part of an owner name; no connections

// Converts a refusal into an error for callers in this process.
Status StatusOf(const Refusal& refusal) { return {CodeOf(refusal.reason), refusal.message}; }

class EmbeddedNode final : public Embedded {
 public:
  EmbeddedNode(std::unique_ptr<IssuingNode> node, std::shared_ptr<History> history,
               Milliseconds issue_wait)
      : history_(std::move(history)),
        node_(std::move(node)),
        caller_(node_->issuer(), SystemClock(), issue_wait) {}
  ~EmbeddedNode() override { Close(); }

  Result<int64_t> Next(std::string_view tag) override {
    const Tag* handle = node_->issuer().Resolve(tag);
    int64_t id = 0;
    if (handle != nullptr && node_->issuer().TryOne(*handle, Method::kEmbedded, &id)) return id;
    FIRN_ASSIGN(const IssueCall call, Issue(handle, {.tag = tag, .count = 1}));
    return call.runs()[0].first;
  }

  Result<std::vector<IdRun>> NextRuns(std::string_view tag, int64_t count) override {
    FIRN_ASSIGN(const IssueCall call, Issue(node_->issuer().Resolve(tag),
                                            {.tag = tag, .count = count, .form = Form::kRuns}));
    const auto runs = call.runs().runs();
    return std::vector<IdRun>(runs.begin(), runs.end());
  }

  Result<std::string> NextText(std::string_view tag) override {
    FIRN_ASSIGN(const IssueCall call,
                Issue(node_->issuer().Resolve(tag), {.tag = tag, .count = 1, .form = Form::kText}));
    std::string text;
    call.AppendText(call.runs()[0].first, SystemClock().Wall(), text);
    return text;
  }

  Result<MachineId> machine() const override {
    const ClaimStatus claim = node_->status().claim;
    if (claim.machine) return *claim.machine;
    return Unavailable(claim.reason.empty() ? "no machine id" : claim.reason);
  }

  const Layout& layout() const override { return node_->layout(); }

  void Close() override {
    // Close may be called twice. In a forked child, the lock may be held by a thread of the parent,
    // so it is not taken there.
    std::unique_lock lock(closing_, std::defer_lock);
    if (!sentinel_.InChild()) lock.lock();
    node_->Stop();
    if (history_ != nullptr) history_->Stop();
  }

 private:
  Result<IssueCall> Issue(const Tag* tag, const Request& request) {
    IssueCall call = tag != nullptr ? IssueCall(*tag, request) : IssueCall(request);
    if (!caller_.Issue(call)) return StatusOf(call.refusal());
    return call;
  }

  const std::shared_ptr<History> history_;  // null: no history
  const std::unique_ptr<IssuingNode> node_;
  PatientCaller caller_;
  const ForkSentinel sentinel_;
  std::mutex closing_;
};

IssuingNodeOptions NodeOptions(const EmbeddedOptions& options) {
  IssuingNodeOptions node;
  const std::string host = HostName();
  node.claim.identity.endpoint = Cat(host, ":", options.instance);
  node.claim.identity.host = host;
  node.claim.identity.pid = getpid();
  node.claim.identity.build = FIRN_VERSION;
  node.claim.rack = options.rack;
  node.claim.worker = options.worker;
  node.claim.window = options.claim_window;
  node.claim.offline_start = options.offline_start;
  if (options.strict_clock) node.id_clock.policy = ClockPolicy::kStrict;
  node.extensions = options.extensions;
  return node;
}

// Returns a started history; null if none is configured.
Result<std::shared_ptr<History>> KeepHistory(const EmbeddedOptions& options) {
  if (options.history_file.empty()) return std::shared_ptr<History>();
  auto history = std::make_shared<History>(
      SystemClock(), History::Options{.file = {.path = options.history_file,
                                               .bytes_max = options.history_file_bytes_max,
                                               .files_max = options.history_files_max},
                                      .log = [](const std::string& line) {
                                        LogWarning("history_incomplete") << line;
                                      }});
  FIRN_TRY(history->Start().WithContext("the history"));
  return history;
}

}  // namespace

Result<std::unique_ptr<Embedded>> Embedded::Open(const EmbeddedOptions& options) {
  FIRN_ASSIGN(const OwnerName owner,
              OwnerName::Make(options.application, options.instance, kAddress));
  std::optional<Layout> layout;
  if (!options.layout.empty()) {
    FIRN_ASSIGN(layout, Layout::Parse(options.layout));
  }
  const NodePlace place{.registry = options.registry,
                        .credentials = options.registry_credentials,
                        .session_timeout = options.session_timeout,
                        .state_dir = options.state_dir,
                        .grant_dir = options.grant_dir,
                        .layout = layout,
                        .static_first_start = options.static_first_start,
                        .static_clock_ok = options.static_clock_ok,
                        .static_adopt = options.static_adopt,
                        .default_strategy = options.default_strategy};
  FIRN_ASSIGN(NodeParts ground, OpenParts(place, owner, NodeOptions(options).claim));
  FIRN_ASSIGN(auto node, OpenNodeOn(std::move(ground), place, owner, NodeOptions(options),
                                    SystemClock(), SystemEntropy()));
  FIRN_ASSIGN(auto history, KeepHistory(options));
  PluginParts parts{
      .clock = SystemClock(), .rates = std::make_shared<RateBoard>(), .history = history};
  if (!options.key_dir.empty()) parts.keys = std::make_shared<KeyRing>(options.key_dir);
  FIRN_TRY(AddBuiltInPlugins(parts, node->catalogue()));
  FIRN_TRY(node->Start());
  FIRN_TRY(node->WaitUntilServing(options.ready_within));
  return std::unique_ptr<Embedded>(
      std::make_unique<EmbeddedNode>(std::move(node), std::move(history), options.issue_wait));
}

}  // namespace firn
