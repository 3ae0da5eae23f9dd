// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what a daemon may answer, as holdings and as status. What is
// taken comes back the same from its own JSON; on the screen every line is as
// wide as the screen, whatever keys are pressed, and no control byte gets there.
#include <cstdlib>
#include <string>

#include "cli/status_report.h"
#include "cli/top/cells.h"
#include "cli/top/table.h"
#include "cli/top/ui.h"
#include "report/holdings.h"

using namespace gpuwatch;

namespace {

void harmless(const std::string& text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  if (text.find("\xe2\x80\xae") != std::string::npos) std::abort();
}

cli::top::Key key_of(std::uint8_t byte) {
  using cli::top::Key;
  if (byte < 0x20) return {static_cast<Key::Code>(byte % (Key::kOther + 1)), byte};
  return {Key::kChar, byte};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  // The first line: size of the screen, then keys; the rest is the answer.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view keys = all.substr(0, std::min<std::size_t>(all.find('\n'), 64));
  const std::string_view text = all.substr(std::min(keys.size() + 1, all.size()));

  cli::StatusReport status;
  status.daemon_running = true;
  status.daemon_status.assign(text);
  harmless(cli::status_text(status));
  (void)cli::status_json(status);

  auto read = report::holdings_from_json(text);
  if (!read.ok()) {
    if (!read.error().message().starts_with("holdings: ")) std::abort();
    return 0;
  }
  const std::string line = report::holdings_json(*read);
  auto again = report::holdings_from_json(line);
  if (!again.ok() || report::holdings_json(*again) != line) std::abort();

  std::string table;
  cli::top::append_table(table, *read, {}, 0, false);
  harmless(table);
  const std::size_t width = data[0] % 150U + 1;
  const std::size_t height = data[1] % 40U + 1;
  cli::top::UiOptions options;
  options.list.ascii = data[0] > 200;
  cli::top::Ui ui(std::move(options));
  for (std::size_t i = 2; i <= keys.size(); ++i) {
    const cli::top::Frame frame = ui.draw(width, height, *read);
    if (frame.size() != height) std::abort();
    for (const cli::top::Line& row : frame) {
      std::size_t columns = 0;
      for (const cli::top::Span& span : row) {
        harmless(span.text);
        columns += cli::top::columns_of(span.text);
      }
      if (columns != width) std::abort();
    }
    if (i < keys.size() && !ui.press(key_of(data[i]), *read)) break;
  }
  return 0;
}
