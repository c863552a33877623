#include <string>
#include <vector>

#include <gflags/gflags.h>

#include "common/entropy.h"
#include "registry/cluster_setup.h"
#include "tools/firn/id_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore_steps.h"
#include "tools/firn/verbs.h"

DEFINE_bool(brand_new, false, "nobody has ever issued ids under this name: begin without a floor");

namespace firn {
namespace {

Result<Output> RunInit(const std::vector<std::string>& words) {
  if (!words.empty()) return Invalid("init takes no arguments");
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  BlockingCoordinator& registry = session.registry();
  FIRN_TRY(registry.PrepareRoot());
  const auto meta = ReadMeta(registry);
  const bool absent = meta.code() == Code::kNotFound;
  if (!absent && !meta.ok()) return meta.status();
  if (absent && !FLAGS_brand_new) return RestoreAsFlagsSay(registry);

  FIRN_TRY(MakeCluster(
      registry,
      {.layout = choice.layout, .rack_bits = choice.split.rack_bits(), .workers = ChosenWorkers()},
      SystemEntropy()));
  FIRN_ASSIGN(const MetaAsRead made, ReadMeta(registry));
  return Output{.json = {{"uuid", made.meta.uuid}, {"layout", made.meta.layout}},
                .text = "cluster " + made.meta.uuid + " made, layout " + made.meta.layout + "\n"};
}

}  // namespace

Verb InitVerb() {
  return {.name = "init",
          .summary = "makes a cluster where there is none",
          .details =
              "Without --brand_new it does what restore does: nobody can tell an empty "
              "registry from one\nthat has lost everything, and servers may still be "
              "issuing under the old one.\n",
          .flags = {FIRN_REGISTRY_FLAGS, "brand_new", "uuid", "layout", "rack_bits", "workers",
                    "claim_window_ms", "skew_max_ms"},
          .run = RunInit};
}

}  // namespace firn
