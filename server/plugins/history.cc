#include "server/plugins/history.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "common/base/cat.h"
#include "common/base/no_signals.h"
#include "common/tag/tag_name.h"

namespace firn {
namespace {

constexpr size_t kClientMax = 64;
constexpr Milliseconds kReportInterval{10'000};

std::string_view MethodName(Method method) {
  switch (method) {
    case Method::kThrift:
      return "thrift";
    case Method::kHttp:
      return "http";
    case Method::kRedis:
      return "redis";
    case Method::kDubbo:
      return "dubbo";
    case Method::kEmbedded:
      break;
  }
  return "embedded";
}

// A buffer with the lines of one call, as many as fit.
class Lines {
 public:
  bool has_room() const { return buffer_.size() - size_ >= History::kLineMax; }
  bool empty() const { return size_ == 0; }
  std::string_view text() const { return {buffer_.data(), size_}; }
  int64_t runs() const { return runs_; }
  void Clear() {
    size_ = 0;
    runs_ = 0;
  }

  void Add(WallMs now, std::string_view tag, const Request& request, const IdRun& run) {
    Put(now.ms());
    Put(tag);
    Put(run.first);
    Put(run.count);
    Put(run.stride);
    Put(MethodName(request.method));
    PutClient(request.client);
    if (!request.trace_id.empty()) PutClient(request.trace_id);
    buffer_[size_ - 1] = '\n';
    ++runs_;
  }

 private:
  void Put(std::string_view text) {
    size_ = static_cast<size_t>(std::copy(text.begin(), text.end(), &buffer_[size_]) - &buffer_[0]);
    buffer_[size_++] = ' ';
  }
  void Put(int64_t number) {
    char* const begin = &buffer_[size_];
    size_ += static_cast<size_t>(std::to_chars(begin, begin + 20, number).ptr - begin);
    buffer_[size_++] = ' ';
  }
  // Clients choose their names, so this replaces characters that could break a line or a column.
  void PutClient(std::string_view client) {
    const std::string_view shown = client.empty() ? "-" : client.substr(0, kClientMax);
    for (const char c : shown) buffer_[size_++] = c > ' ' && c < 0x7F ? c : '?';
    buffer_[size_++] = ' ';
  }

  std::array<char, 2048> buffer_;
  size_t size_ = 0;
  int64_t runs_ = 0;
};

}  // namespace

History::History(const Clock& clock, Options options)
    : clock_(clock),
      queue_bytes_max_(options.queue_bytes_max),
      log_(std::move(options.log)),
      queue_(std::make_unique<Queue>()),
      file_(std::move(options.file)) {}

History::~History() {
  if (sentinel_.InChild()) {
    if (writer_.joinable()) writer_.detach();
    static_cast<void>(queue_.release());
    return;
  }
  Stop();
}

Status History::Start() {
  FIRN_TRY(file_.Open());
  queue_->lines.reserve(queue_bytes_max_);
  queue_->running = true;
  writer_ = ThreadWithoutSignals([this] { WriterLoop(); });
  return {};
}

void History::Add(std::string_view tag, const Request& request, const Runs& runs) {
  if (sentinel_.InChild()) return;
  const WallMs now = clock_.Wall();
  Lines lines;
  for (const IdRun& run : runs.runs()) {
    if (!lines.has_room()) {
      Put(lines.text(), lines.runs());
      lines.Clear();
    }
    lines.Add(now, tag, request, run);
  }
  if (!lines.empty()) Put(lines.text(), lines.runs());
}

void History::Put(std::string_view lines, int64_t runs) {
  bool wake = false;
  {
    const std::scoped_lock lock(queue_->mutex);
    if (!queue_->running || queue_->lines.size() + lines.size() > queue_bytes_max_) {
      queue_->dropped += runs;
      return;
    }
    queue_->lines += lines;
    queue_->runs += runs;
    wake = !queue_->hurry && queue_->lines.size() > queue_bytes_max_ / 2;
    queue_->hurry |= wake;
  }
  if (wake) queue_->wake.notify_one();
}

void History::Stop() {
  if (sentinel_.InChild()) return;
  {
    const std::scoped_lock lock(queue_->mutex);
    queue_->running = false;
  }
  queue_->wake.notify_one();
  if (!writer_.joinable()) return;
  writer_.join();
  if (const Status status = file_.Sync(); !status.ok() && log_) {
    log_("history: " + status.ToString());
  }
  file_.Close();
}

HistoryCounts History::counts() const {
  const std::scoped_lock lock(queue_->mutex);
  return {written_.load(), queue_->dropped, lost_.load()};
}

void History::WriterLoop() {
  std::string lines;
  lines.reserve(queue_bytes_max_);
  for (bool going_on = true; going_on;) {
    int64_t runs = 0, dropped = 0;
    {
      std::unique_lock lock(queue_->mutex);
      queue_->wake.wait_for(lock, kFlushInterval,
                            [&] { return !queue_->running || queue_->hurry; });
      queue_->hurry = false;
      going_on = queue_->running;
      lines.swap(queue_->lines);
      runs = std::exchange(queue_->runs, 0);
      dropped = queue_->dropped;
    }
    WriteOut(lines, runs, dropped);
    Report(dropped + lost_.load(), !going_on);
    lines.clear();
  }
}

void History::WriteOut(const std::string& lines, int64_t runs, int64_t dropped) {
  const int64_t missing = dropped + lost_.load();
  if (lines.empty() && missing == noted_) return;
  const Status status = AppendWithNote(lines, missing - noted_);
  if (status.ok()) {
    noted_ = missing;
    written_ += runs;
  } else {
    lost_ += runs;
    failure_ = status.message();
  }
}

Status History::AppendWithNote(const std::string& lines, int64_t missing) {
  if (missing == 0) return file_.Append(lines);
  return file_.Append(
      Cat("# ", clock_.Wall().ms(), " ", missing, " runs are missing here\n", lines));
}

void History::Report(int64_t missing, bool at_once) {
  if (missing == reported_) return;
  const BootMs now = clock_.Boot();
  if (!at_once && reported_at_ && now - *reported_at_ < kReportInterval) return;
  if (log_) {
    log_(Cat("history: ", missing, " runs are not recorded, ", lost_.load(),
             " of them because the file was not writable", failure_.empty() ? "" : ": ", failure_));
  }
  reported_at_ = now;
  reported_ = missing;
  failure_.clear();
}

HistoryPlugin::HistoryPlugin(std::shared_ptr<History> history, std::string_view tag)
    : history_(std::move(history)), tag_(EncodeTagName(tag)) {}

std::optional<Refusal> HistoryPlugin::After(const Request& request, Runs& runs) {
  history_->Add(tag_, request, runs);
  return std::nullopt;
}

}  // namespace firn
