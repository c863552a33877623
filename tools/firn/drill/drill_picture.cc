#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "common/base/cat.h"
#include "tools/firn/drill/drill_record.h"

namespace firn {
namespace {

constexpr double kWidth = 900, kHeight = 200, kLeft = 70, kTop = 60, kGap = 70;
constexpr size_t kMarkBytesMax = 60;

std::string Text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return safe;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Position and scale of one plot.
struct Panel {
  double top;
  double seconds;
  double highest;
  bool logarithmic = false;
  double lowest = 0;

  double X(double at_s) const { return kLeft + kWidth * at_s / seconds; }
  double Y(double value) const {
    const double part =
        logarithmic ? std::log(std::max(value, lowest) / lowest) / std::log(highest / lowest)
                    : value / highest;
    return top + kHeight * (1 - part);
  }
};

std::string Line(const DrillRecord& record, const Panel& panel, std::string_view style,
                 const std::function<double(const DrillSecond&)>& value) {
  std::string points;
  for (const DrillSecond& second : record.seconds()) {
    points += Cat(Number(panel.X(second.at_s)), ",", Number(panel.Y(value(second))), " ");
  }
  return Cat("<polyline class='", style, "' points='", points, "'/>\n");
}

std::string Frame(const Panel& panel, std::string_view title, const std::vector<double>& steps) {
  std::string text =
      Cat("<text x='", Number(kLeft), "' y='", Number(panel.top - 8), "'>", title, "</text>\n");
  for (const double step : steps) {
    const std::string y = Number(panel.Y(step));
    text += Cat("<line class='grid' x1='", Number(kLeft), "' x2='", Number(kLeft + kWidth),
                "' y1='", y, "' y2='", y, "'/><text class='step' x='", Number(kLeft - 8), "' y='",
                Number(panel.Y(step) + 4), "'>", Number(step), "</text>\n");
  }
  return text;
}

std::string Marks(const DrillRecord& record, const Panel& first, double bottom) {
  std::string text;
  int row = 0;
  for (const DrillMark& mark : record.marks()) {
    const std::string x = Number(first.X(mark.at_s));
    text +=
        Cat("<line class='mark' x1='", x, "' x2='", x, "' y1='", Number(kTop - 4), "' y2='",
            Number(bottom), "'/><text class='said' x='", x, "' y='", Number(bottom + 34 + 14 * row),
            "'>", Text(mark.what.substr(0, kMarkBytesMax)), "</text>\n");
    ++row;
  }
  return text;
}

std::vector<double> PowersBetween(double low, double high) {
  std::vector<double> powers;
  for (double power = low; power <= high * 1.001; power *= 10) powers.push_back(power);
  return powers;
}

constexpr std::string_view kStyle =
    "<style>svg{background:#fff;font:12px sans-serif}text{fill:#333}.title{font-size:15px}"
    ".step{text-anchor:end;fill:#777}.grid{stroke:#ddd}"
    "polyline{fill:none;stroke-width:1.5}.calls{stroke:#2a7ab8}.p50{stroke:#2a7ab8}"
    ".p99{stroke:#b8730a}.longest{stroke:#c0392b}.failed{stroke:#c0392b;stroke-width:3}"
    ".mark{stroke:#555;stroke-dasharray:4 3}.said{fill:#555}</style>\n";

}  // namespace

std::string DrillPicture(const DrillRecord& record, const std::string& title) {
  double seconds = 1, calls = 1, lowest = 1, longest = 1;
  for (const DrillSecond& second : record.seconds()) {
    seconds = std::max(seconds, second.at_s);
    calls = std::max(calls, second.calls_a_second);
    if (second.p50_ms > 0) lowest = std::min(lowest, second.p50_ms);
    longest = std::max(longest, second.longest_ms);
  }
  const Panel rates{.top = kTop, .seconds = seconds, .highest = calls};
  const double low = std::pow(10, std::floor(std::log10(lowest)));
  const double high = std::max(low * 10, std::pow(10, std::ceil(std::log10(longest))));
  const Panel times{.top = kTop + kHeight + kGap,
                    .seconds = seconds,
                    .highest = high,
                    .logarithmic = true,
                    .lowest = low};
  const double bottom = times.top + kHeight;
  const double height = bottom + 50 + 14 * static_cast<double>(record.marks().size());
  std::string svg =
      Cat("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1000 ", Number(height),
          "' role='img'>\n", kStyle, "<title>", Text(title), "</title><text class='title' x='",
          Number(kLeft), "' y='24'>", Text(title), "</text>\n");
  svg += Frame(rates, "calls per second; failed calls red", {0, calls / 2, calls});
  svg += Line(record, rates, "calls", [](const DrillSecond& s) { return s.calls_a_second; });
  for (const DrillSecond& second : record.seconds()) {
    if (second.failed == 0) continue;
    const std::string x = Number(rates.X(second.at_s));
    const double failed = std::min(static_cast<double>(second.failed), calls);
    svg += Cat("<line class='failed' x1='", x, "' x2='", x, "' y1='", Number(rates.Y(0)), "' y2='",
               Number(rates.Y(failed)), "'/>\n");
  }
  svg += Frame(times, "milliseconds: p50 blue, p99 brown, longest red", PowersBetween(low, high));
  svg += Line(record, times, "p50", [](const DrillSecond& s) { return s.p50_ms; });
  svg += Line(record, times, "p99", [](const DrillSecond& s) { return s.p99_ms; });
  svg += Line(record, times, "longest", [](const DrillSecond& s) { return s.longest_ms; });
  svg += Marks(record, rates, bottom);
  svg += Cat("<text x='", Number(kLeft), "' y='", Number(bottom + 18), "'>0 to ", Number(seconds),
             " s</text>\n</svg>\n");
  return svg;
}

}  // namespace firn
