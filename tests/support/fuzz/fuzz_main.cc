// The main function of fuzz targets: replays the corpus, then runs inputs derived from it.
//
//   target [--seed=N] [--runs=N] [--seconds=N] [--corpus=DIR] [FILE...]
//
// With files it replays only those, to reproduce a failure. The input under test is written to a
// file named crash-<target>-<seed>-<run> when the process is about to die, including a sanitizer's
// report and a hang.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "common/time/entropy.h"
#include "tests/support/fuzz/fuzz_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Present when a sanitizer is linked; called before it ends the process.
// NOLINTNEXTLINE(bugprone-reserved-identifier): its name is not ours to choose
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

constexpr unsigned kHangSeconds = 20;

struct Options {
  uint64_t seed = 1;
  uint64_t runs = 100'000;
  int64_t seconds = 60;
  std::string corpus;
  std::vector<std::string> files;
};

// The current input, for the handlers below.
const std::string* g_input = nullptr;
char g_crash_file[512];

void SaveInput() {
  if (g_input == nullptr) return;
  const int file = open(g_crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  if (write(file, g_input->data(), g_input->size()) >= 0) {
    dprintf(STDERR_FILENO, "the input is in %s\n", g_crash_file);
  }
  close(file);
  g_input = nullptr;
}

void OnSignal(int signal) {
  dprintf(STDERR_FILENO, signal == SIGALRM ? "hangs\n" : "dies of signal %d\n", signal);
  SaveInput();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void WatchForDeath() {
  std::signal(SIGALRM, OnSignal);
  std::signal(SIGABRT, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(SaveInput);
    return;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, OnSignal);
}

void RunOne(const std::string& input, std::string_view target, uint64_t seed,
            const std::string& what) {
  std::snprintf(g_crash_file, sizeof g_crash_file, "crash-%.*s-%llu-%s",
                static_cast<int>(target.size()), target.data(),
                static_cast<unsigned long long>(seed), what.c_str());
  g_input = &input;
  alarm(kHangSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
  g_input = nullptr;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> ReadCorpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());  // a folder's order differs between machines
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(ReadFile(path));
  return inputs;
}

[[noreturn]] void Usage(std::string_view complaint) {
  std::fprintf(stderr,
               "%.*s\nusage: [--seed=N] [--runs=N] [--seconds=N] [--corpus=DIR] [FILE...]\n",
               static_cast<int>(complaint.size()), complaint.data());
  std::exit(2);
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string_view name = arg.substr(0, equals);
    if (!arg.starts_with("--")) {
      options.files.emplace_back(arg);
    } else if (equals == std::string_view::npos) {
      Usage("a flag needs a value");
    } else if (const char* value = argv[i] + equals + 1; name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--runs") {
      options.runs = std::strtoull(value, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtoll(value, nullptr, 10);
    } else if (name == "--corpus") {
      options.corpus = value;
    } else {
      Usage("no such flag");
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  const std::string target = std::filesystem::path(argv[0]).filename();
  WatchForDeath();
  for (const std::string& file : options.files) RunOne(ReadFile(file), target, 0, "replay");
  if (!options.files.empty()) return 0;

  const std::vector<std::string> corpus = ReadCorpus(options.corpus);
  std::printf("%s: seed %llu, %zu inputs in the corpus\n", target.c_str(),
              static_cast<unsigned long long>(options.seed), corpus.size());
  for (size_t i = 0; i < corpus.size(); ++i) {
    RunOne(corpus[i], target, options.seed, "corpus" + std::to_string(i));
  }

  firn::SeededEntropy entropy(options.seed);
  firn::FuzzMutator mutator(corpus, entropy);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  uint64_t run = 0;
  for (; run < options.runs && std::chrono::steady_clock::now() < end; ++run) {
    RunOne(mutator.Next(), target, options.seed, std::to_string(run));
  }
  std::printf("%s: %llu runs, no complaint\n", target.c_str(),
              static_cast<unsigned long long>(run));
  return 0;
}
