#include <set>

#include "server/issue/range_cursor.h"
#include "tests/server/issue/snowflake/interleaved_scenarios.h"

namespace firn {
namespace {

// A cursor, an owner that loads ranges [100, ...), [200, ...) like Segment, and takers.
class CursorTable final : private LowWater {
 public:
  explicit CursorTable(Interleaving& run) : run_(run) {}

  // Loads the first `size` numbers of the next hundred; it is low when `mark` of them are left.
  void Load(int64_t size, int64_t mark = 1) {
    run_.ForeseeNothing();
    if (cursor_.left() > 0) return;
    ++loaded_;
    in_ranges_ += size;
    ranges_.push_back({size, mark});
    cursor_.Load({loaded_ * 100, loaded_ * 100 + size}, mark);
  }

  // Removes the rest: no taker has got it, and none may get it later.
  void Unload() {
    const Range rest = cursor_.Unload();
    in_ranges_ -= rest.size();
    for (int64_t number = rest.begin; number < rest.end; ++number) Given(number);
  }

  void TakeOne() {
    int64_t number = 0;
    if (cursor_.TakeOne(&number)) Got(number);
  }

  void TakeUpTo(int64_t count) {
    const Range range = cursor_.TakeUpTo(count);
    run_.Expect(range.size() <= count, "more was given than asked for");
    for (int64_t number = range.begin; number < range.end; ++number) Got(number);
  }

  // Checks the result when all threads are done.
  void Judge() {
    const int64_t lost = cursor_.lost();
    Unload();
    run_.Expect(taken_ + lost == in_ranges_, "numbers are missing that are not counted as lost");
    run_.Expect(low_ == low_expected_,
                "a range that was not low was reported, or a low range was not");
  }

 private:
  struct Loaded {
    int64_t size;
    int64_t mark;
  };

  void OnLow() noexcept override { ++low_; }

  void Got(int64_t number) {
    ++taken_;
    Given(number);
    const auto range = static_cast<size_t>(number / 100 - 1);
    const bool known = number >= 100 && range < ranges_.size();
    if (known && ranges_[range].size - number % 100 == ranges_[range].mark) ++low_expected_;
  }

  void Given(int64_t number) {
    const auto range = static_cast<size_t>(number / 100 - 1);
    const bool known =
        number >= 100 && range < ranges_.size() && number % 100 < ranges_[range].size;
    run_.Expect(known, "a number that was in no range");
    run_.Expect(given_.insert(number).second, "a number was given twice");
  }

  Interleaving& run_;
  ForkCells::Cell cell_{0};
  RangeCursor cursor_{cell_, *this};
  int64_t loaded_ = 0;
  int64_t in_ranges_ = 0;
  int64_t taken_ = 0;
  std::vector<Loaded> ranges_;
  std::set<int64_t> given_;
  int low_ = 0;
  int low_expected_ = 0;
};

void TakersAndASwitch(Interleaving& run) {
  CursorTable table(run);
  table.Load(2);
  run.Run({[&] {
             table.TakeOne();
             table.TakeOne();
           },
           [&] { table.TakeUpTo(2); },
           [&] {
             table.Load(3, 2);
             table.Load(2);
           }});
  table.Judge();
}

// The rest of a range is unloaded while others take: no taker may get unloaded numbers.
void TakersAndAnUnload(Interleaving& run) {
  CursorTable table(run);
  table.Load(3);
  run.Run({[&] {
             table.TakeOne();
             table.TakeOne();
           },
           [&] { table.TakeUpTo(2); },
           [&] {
             table.Unload();
             table.Load(2, 2);
           }});
  table.Judge();
}

// A taker is delayed while several ranges are loaded, until its slot holds another range.
Scenario ATakerSleepsOver(int switches, bool once) {
  return [=](Interleaving& run) {
    CursorTable table(run);
    table.Load(3);
    run.Run({[&] {
               if (!once) table.TakeOne();
               table.TakeUpTo(2);
             },
             [&] {
               for (int i = 0; i < switches; ++i) {
                 table.Unload();
                 table.Load(3, 1 + i % 2 * 2);
               }
             }});
    table.Judge();
  };
}

}  // namespace

std::vector<NamedScenario> CursorScenarios() {
  return {{"takers and a switch", TakersAndASwitch},
          {"takers and an unload", TakersAndAnUnload},
          {"a taker sleeps over two ranges", ATakerSleepsOver(2, false)},
          {"a taker sleeps over sixteen ranges",
           ATakerSleepsOver(16, false),
           {.preemptions = 2, .stale_reads = 1, .foresights = 0}},
          {"a taker foresees one of sixteen ranges",
           ATakerSleepsOver(16, true),
           {.preemptions = 1, .stale_reads = 0, .foresights = 1}}};
}

}  // namespace firn
