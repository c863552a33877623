#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/issue/refusal.h"
#include "server/issue/request.h"
#include "server/issue/runs.h"

namespace firn {

// Code that runs before and after the calls of a tag. One object may serve many tags, and a tag may
// have many plugins.
//
// Called by any number of threads at once. Must not block, because it runs on the thread that
// serves the connection. Should not throw: an exception refuses the call with INTERNAL.
class Plugin {
 public:
  virtual ~Plugin() = default;

  virtual std::string_view name() const = 0;

  // Plugins run in ascending order, in all three functions. Those with equal order run as listed in
  // the tag's definition. Must be constant.
  virtual int order() const = 0;

  // The effect of After on ids. Constant.
  enum class Effect : uint8_t {
    kNone,  // does not change ids
    kEach,  // replaces each id independently, and slowly: gets long lists in parts
    kAny,
  };
  virtual Effect effect() const { return Effect::kAny; }

  // Runs before ids are made, once per call, even if the call is parked repeatedly. A refusal ends
  // the call.
  virtual std::optional<Refusal> Before(const Request&) { return std::nullopt; }

  // Runs when the call has all its ids. May replace them (same number of ids, every run valid). If
  // it refuses, the ids are lost and the caller gets none. With kEach, `runs` may be a part of the
  // ids.
  virtual std::optional<Refusal> After(const Request&, Runs&) { return std::nullopt; }

  // Runs when a call ends without ids after this plugin's Before had accepted it. Undoes the effect
  // of Before.
  virtual void OnRefusal(const Request&, const Refusal&) {}
};

// The progress of the plugins on a call that has all its ids.
struct PluginWork {
  void Clear() {
    plugin = 0;
    at = {};
    done.Clear();
  }

  size_t plugin = 0;  // the plugin that runs next, or has processed a part
  RunsCursor at{};    // the first id that it has not processed
  Runs done{};        // the processed ids, as it returned them
};

// The plugins of one tag, in their order. Immutable, thread-safe. If a plugin throws or returns
// invalid ids, only that call is affected.
class PluginChain {
 public:
  PluginChain() = default;
  explicit PluginChain(std::vector<std::shared_ptr<Plugin>> plugins);

  // Number of ids that a plugin with Effect::kEach gets at once.
  static constexpr int64_t kIdsPerPart = 4096;

  bool empty() const { return plugins_.empty(); }
  size_t size() const { return plugins_.size(); }
  bool changes_ids() const { return changes_ids_; }

  // Runs every Before until one refuses the call, then notifies the plugins that had accepted it.
  std::optional<Refusal> Before(const Request& request) const;

  // Runs every After, until a refusal, an exception or invalid `runs`. If `work.done` is not empty
  // on return, only a part has been processed: call this again to continue.
  std::optional<Refusal> After(const Request& request, Runs& runs, PluginWork& work) const;

  // Notifies every plugin of the refusal.
  void OnRefusal(const Request& request, const Refusal& refusal) const;

 private:
  void Tell(size_t count, const Request& request, const Refusal& refusal) const;

  std::vector<std::shared_ptr<Plugin>> plugins_;
  bool changes_ids_ = false;
};

}  // namespace firn
