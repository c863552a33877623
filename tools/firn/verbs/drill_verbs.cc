#include <algorithm>
#include <string>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "tools/firn/drill/drill_scenarios.h"
#include "tools/firn/table.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_string(source, "",
              "Folder of Firn's source tree. Empty: the tree that contains the current folder or "
              "this program.");
DEFINE_string(logs, "",
              "Folder that keeps the logs and a plot, drill.svg. Empty: they are deleted.");
DEFINE_int32(away, 0,
             "Duration of each fault that a scenario causes, in seconds. 0: the scenario's own.");

DECLARE_bool(json);
DECLARE_double(rate);

namespace firn {
namespace {

using Words = std::vector<std::string>;

constexpr int kNotDone = 3;  // tools/drill's exit code

Result<Output> RunListDrills(const Words& words) {
  if (!words.empty()) return Invalid("list takes no arguments");
  Output output{.json = Json::array(), .text = {}};
  Table table({"SCENARIO", "CLUSTER", "FAULT"});
  for (const DrillScenario& scenario : DrillScenarios()) {
    const char* const cluster = scenario.whole ? "three servers" : "a test's own";
    output.json.push_back(
        {{"scenario", scenario.name}, {"cluster", cluster}, {"summary", scenario.summary}});
    table.Add({std::string(scenario.name), cluster, std::string(scenario.summary)});
  }
  output.text = table.Text();
  return output;
}

Result<std::vector<DrillScenario>> Chosen(const Words& words) {
  const std::string list = "`" + PrintCommand(PrintedCommand::kDrillList) + "`";
  if (words.empty()) return Invalid("name a scenario of " + list + ", or `all`");
  std::vector<DrillScenario> chosen;
  for (const std::string& word : words) {
    for (const DrillScenario& scenario : DrillScenarios()) {
      if (word == "all" || word == scenario.name) chosen.push_back(scenario);
    }
    const bool known = word == "all" || (!chosen.empty() && chosen.back().name == word);
    if (!known) return Invalid("there is no scenario '" + word + "'; see " + list);
  }
  return chosen;
}

Result<Output> RunRun(const Words& words) {
  FIRN_ASSIGN(const std::vector<DrillScenario> chosen, Chosen(words));
  const DrillRun how{.source = FLAGS_source,
                     .logs = FLAGS_logs,
                     .rate = static_cast<int>(std::clamp(FLAGS_rate, 0.0, 999'999.0)),
                     .away_s = FLAGS_away,
                     .quiet = FLAGS_json};
  Output output{.json = Json::array(), .text = {}};
  Table table({"SCENARIO", "VERDICT"});
  std::string undone, reasons;
  for (const DrillScenario& scenario : chosen) {
    const Result<int> ended = RunDrill(scenario, how);
    // A scenario that is not built does not stop the others.
    if (ended.code() == Code::kNotFound && chosen.size() > 1) {
      output.json.push_back({{"scenario", scenario.name}, {"why", ended.status().message()}});
      table.Add({std::string(scenario.name), "could not be run"});
      undone.append(undone.empty() ? "" : ", ").append(scenario.name);
      reasons += ended.status().message() + "\n";
      continue;
    }
    FIRN_ASSIGN(const int code, ended);
    const bool done = code != kNotDone || !scenario.whole;
    const std::string verdict =
        code == 0 ? "every promise was kept" : Cat("a promise was broken (exit code ", code, ")");
    output.json.push_back({{"scenario", scenario.name}, {"kept", code == 0}, {"exit", code}});
    table.Add({std::string(scenario.name), done ? verdict : "could not be run"});
    output.wrong |= done && code != 0;
    if (!done) undone.append(undone.empty() ? "" : ", ").append(scenario.name);
  }
  output.text = table.Text() + reasons;
  if (output.wrong || undone.empty()) return output;
  return Unavailable(output.text + "could not be run, for the reasons above: " + undone);
}

}  // namespace

Verb DrillVerb() {
  Verb list{.name = "list", .summary = "all scenarios"};
  list.run = RunListDrills;
  Verb run{
      .name = "run",
      .arguments = "SCENARIO...",
      .summary = "runs failure scenarios on throw-away clusters; `all`: every scenario",
      .details =
          "Requires Firn's source tree and Debian's ZooKeeper: each scenario starts its own "
          "cluster.\nExit code 1 if a promise was broken; 3 if none was, but a scenario could not "
          "be run.\n",
      .flags = {"source", "logs", "rate", "away"}};
  run.run = RunRun;
  return {.name = "drill",
          .summary = "failure scenarios: how ids and calls fare when something breaks",
          .below = {std::move(list), std::move(run), DrillWatchVerb()}};
}

}  // namespace firn
