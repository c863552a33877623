#include "tests/drill/claimant/journal.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace firn {
namespace {

std::vector<std::string> Split(std::string_view line, char separator) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool ReadNumber(const std::string& word, int64_t& value) {
  const char* const end = word.data() + word.size();
  const auto [stopped, failure] = std::from_chars(word.data(), end, value);
  return failure == std::errc() && stopped == end;
}

std::string Clean(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

}  // namespace

std::string FormatRun(const IssuedRun& run) {
  return std::to_string(run.at.ms()) + " " + std::to_string(run.run.first) + " " +
         std::to_string(run.run.count) + " " + std::to_string(run.run.stride) + "\n";
}

Result<IssuedRun> ParseRun(std::string_view line) {
  const std::vector<std::string> words = Split(line, ' ');
  int64_t at = 0;
  IdRun run;
  if (words.size() != 4 || !ReadNumber(words[0], at) || !ReadNumber(words[1], run.first) ||
      !ReadNumber(words[2], run.count) || !ReadNumber(words[3], run.stride) || run.count < 1 ||
      run.stride < 1) {
    return Corrupt("not a run of ids: " + std::string(line));
  }
  return IssuedRun{BootMs(at), run};
}

std::string FormatStatus(const StatusLine& status) {
  const int64_t machine = status.machine ? int64_t{status.machine->value()} : -1;
  return std::to_string(status.at.ms()) + "\t" + status.state + "\t" + std::to_string(machine) +
         "\t" + std::to_string(status.bound.ms()) + "\t" + (status.connected ? "1" : "0") + "\t" +
         std::to_string(status.session) + "\t" + Clean(status.answer) + "\t" +
         Clean(status.reason) + "\n";
}

Result<StatusLine> ParseStatus(std::string_view line) {
  const std::vector<std::string> words = Split(line, '\t');
  int64_t at = 0, machine = 0, bound = 0, connected = 0, session = 0;
  if (words.size() != 8 || !ReadNumber(words[0], at) || !ReadNumber(words[2], machine) ||
      !ReadNumber(words[3], bound) || !ReadNumber(words[4], connected) ||
      !ReadNumber(words[5], session)) {
    return Corrupt("not a status: " + std::string(line));
  }
  StatusLine status{.at = BootMs(at),
                    .state = words[1],
                    .machine = {},
                    .bound = WallMs(bound),
                    .connected = connected == 1,
                    .session = session,
                    .answer = words[6],
                    .reason = words[7]};
  if (machine >= 0) status.machine = MachineId(static_cast<uint32_t>(machine));
  return status;
}

std::vector<std::string> LineReader::Next() {
  std::ifstream file(path_, std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(read_))) return {};
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return {};
  read_ += end + 1;
  return Split(std::string_view(text).substr(0, end), '\n');
}

}  // namespace firn
