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

  // Plugins run in ascending order, in all three functions. Plugins of equal order run in the order
  // of the tag's list. Must be constant.
  virtual int order() const = 0;

  // What After does to ids. Constant.
  enum class Effect : uint8_t {
    kNone,  // it changes none
    kEach,  // it replaces each one by itself, which takes long: it gets long lists in parts
    kAny,
  };
  virtual Effect effect() const { return Effect::kAny; }

  // Before ids are made, once per call, however often the call is parked. A refusal ends the call.
  virtual std::optional<Refusal> Before(const Request&) { return std::nullopt; }

  // Runs when all ids are there. May replace them (same number of ids, every run valid) or refuse:
  // then they are lost, and the caller gets none of them. With kEach, `runs` may be a part of them.
  virtual std::optional<Refusal> After(const Request&, Runs&) { return std::nullopt; }

  // Runs when a call ends without ids after this plugin's Before had let it pass. Undoes what
  // Before reserved.
  virtual void OnRefusal(const Request&, const Refusal&) {}
};

// How far the plugins have got with a call whose ids are there.
struct PluginWork {
  void Clear() {
    plugin = 0;
    at = {};
    done.Clear();
  }

  size_t plugin = 0;  // that runs next, or is at work
  RunsCursor at{};    // the ids that it has not had yet
  Runs done{};        // the others, as it returned them
};

// The plugins of one tag, in their order. Immutable, thread-safe. An exception of a plugin, or
// invalid ids that it returns, affect only their call.
class PluginChain {
 public:
  PluginChain() = default;
  explicit PluginChain(std::vector<std::shared_ptr<Plugin>> plugins);

  // Ids that a plugin with Effect::kEach gets at once.
  static constexpr int64_t kIdsPerPart = 4096;

  bool empty() const { return plugins_.empty(); }
  size_t size() const { return plugins_.size(); }
  bool changes_ids() const { return changes_ids_; }

  // Runs every Before until one refuses, then notifies the plugins that had let the call pass.
  std::optional<Refusal> Before(const Request& request) const;

  // Runs every After. A refusal, an exception or invalid `runs` end it. If `work.done` is not empty
  // then, a part has been done, and the same call continues it.
  std::optional<Refusal> After(const Request& request, Runs& runs, PluginWork& work) const;

  // Notifies every plugin.
  void OnRefusal(const Request& request, const Refusal& refusal) const;

 private:
  void Tell(size_t count, const Request& request, const Refusal& refusal) const;

  std::vector<std::shared_ptr<Plugin>> plugins_;
  bool changes_ids_ = false;
};

}  // namespace firn
