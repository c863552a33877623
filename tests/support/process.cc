#include "tests/support/process.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr int kNotFound = 127;  // the shell's exit code for a missing program

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Words as execvpe expects them.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(const Process::Options& options) {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t end = text.find('=');
    if (end != std::string::npos) values[text.substr(0, end)] = text.substr(end + 1);
  }
  for (const auto& [name, value] : options.environment) values[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : values) entries.push_back(name + "=" + value);
  return entries;
}

// Runs in the child, between fork and exec. Allocates nothing: another thread of the parent may
// have had the allocator's lock at the fork, and this process would wait for it without end.
[[noreturn]] void Become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                         const Process::Options& options, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotFound);  // the parent has already died
  const int in = open("/dev/null", O_RDONLY);
  const int out = options.output_file.empty()
                      ? open("/dev/null", O_WRONLY)
                      : open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(kNotFound);
  execvpe(arguments[0], arguments.data(), environment.data());
  _exit(kNotFound);
}

bool CanBind(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(listener);
  return bound;
}

// Locks the port's file until this program ends, however it ends. free_port of tools/lib.sh and of
// tools/programs.py lock the same files.
bool Hold(int port) {
  const std::string folder = "/tmp/firn-ports-" + std::to_string(getuid());
  mkdir(folder.c_str(), 0700);
  const std::string path = folder + "/" + std::to_string(port);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) Die("cannot open " + path);
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  close(file);
  return false;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const Options& options) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables = EnvironmentWith(options);
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> environment = Pointers(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) Die("cannot fork");
  if (pid_ == 0) Become(arguments, environment, options, parent);
}

Process::~Process() {
  if (pid_ < 0) return;
  Kill();
  Reap(0);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_code_(other.exit_code_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

void Process::Reap(int options) {
  int status = 0;
  if (exit_code_ || waitpid(pid_, &status, options) != pid_) return;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool Process::Running() {
  if (pid_ >= 0) Reap(WNOHANG);
  return pid_ >= 0 && !exit_code_;
}

void Process::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

void Process::Pause() {
  Signal(SIGSTOP);
  int status = 0;
  const bool stopped = Eventually(kPatience, [&] {
    return !Running() ||
           (waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_ && WIFSTOPPED(status));
  });
  if (!stopped) Die("a process does not stop");
}

std::optional<int> Process::Wait(Milliseconds patience) {
  Eventually(patience, [this] { return !Running(); });
  return exit_code_;
}

Finished RunToEnd(const std::vector<std::string>& command, Milliseconds patience) {
  const TempDir dir;
  // The shell redirects each stream to a separate file, then becomes the program.
  std::vector<std::string> words{"sh", "-c", R"(exec "$@" >"$OUT" 2>"$ERR")", "sh"};
  words.insert(words.end(), command.begin(), command.end());
  Process process(words, {.environment = {{"OUT", dir / "out"}, {"ERR", dir / "err"}}});
  const int exit_code = process.Wait(patience).value_or(-1);
  return {exit_code, ReadWhole(dir / "out"), ReadWhole(dir / "err")};
}

Finished RunFirn(const std::vector<std::string>& words, const std::vector<std::string>& flags) {
  std::vector<std::string> command{BuiltProgram("firn")};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), flags.begin(), flags.end());
  return RunToEnd(command);
}

std::string BuiltProgram(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

int FreePort() {
  constexpr int kFirst = 10'000;
  constexpr uint64_t kPorts = 20'000;
  constexpr int kTriesMax = 1000;
  for (int i = 0; i < kTriesMax; ++i) {
    const int port = kFirst + static_cast<int>(SystemEntropy().Below(kPorts));
    if (Hold(port) && CanBind(port)) return port;
  }
  Die("no free port");
}

void SleepBriefly() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

BootMs TestNow() { return SystemClock().Boot(); }

}  // namespace firn
