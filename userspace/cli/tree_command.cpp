// SPDX-License-Identifier: Apache-2.0
// See tree_command.h. The moment of most memory is not known before the end, so
// a tree at the peak takes two passes over the file.
#include "cli/tree_command.h"

#include "attribute/attributor.h"
#include "cli/output.h"
#include "decode/decoder.h"
#include "decode/story.h"
#include "publish/tree_text.h"
#include "source/gwcap.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

std::uint64_t weight(const decode::Tree& tree) {
  std::uint64_t sum = 0;
  for (const model::Usage& usage : tree.memory()) sum += usage.live;
  return sum;
}

struct State {
  attribute::Attributor attributor;
  decode::StoryBuilder story;
  std::uint64_t peak_record = 0;  // after so many records there was most memory
  source::GwcapHeader header;
};

// Reads the first `records` of the file; of all, notes where the peak was.
Status read(const TreeRequest& request, std::uint64_t records, State& state) {
  auto reader = source::GwcapReader::open(request.file);
  if (!reader) return std::move(reader.error());
  state.header = reader->header();
  const auto recorded = model::parse_driver_version(state.header.driver_version);
  const decode::Decoder decoder(request.driver ? *request.driver : recorded.value_or(model::DriverVersion{}));
  std::vector<model::StoryEvent> events;
  std::uint64_t most = 0;
  std::uint64_t most_objects = 0;
  for (std::uint64_t done = 0; done < records;) {
    auto record = reader->next();
    if (!record) return std::move(record.error());
    if (!record->has_value()) break;
    ++done;
    state.attributor.learn(**record);
    state.story.observe(decoder.decode(**record), events);
    events.clear();
    const std::uint64_t now = weight(state.story.tree());
    const std::uint64_t objects = state.story.tree().objects();
    if (now < most || (now == most && objects <= most_objects)) continue;
    most = now;
    most_objects = objects;
    state.peak_record = done;
  }
  return {};
}

class Printer : public decode::TreeVisitor {
 public:
  Printer(State& state, bool json, Output& output) : state_(state), json_(json), output_(output) {
    options_.realtime_offset_ns = state.header.realtime_minus_monotonic_ns;
  }

  bool process(const model::TreeProcess& process) override {
    // Who holds nothing any more is no part of the tree.
    if (process.objects == 0) return false;
    process_ = process;
    const model::Actor actor = state_.attributor.actor_of(process.head);
    if (json_)
      publish::append_tree_json(output_.buffer(), process, actor, options_);
    else
      publish::append_tree_line(output_.buffer(), process, actor);
    return true;
  }
  bool client(const model::TreeClient& client) override {
    if (json_)
      publish::append_tree_json(output_.buffer(), process_, client);
    else
      publish::append_tree_line(output_.buffer(), client);
    return true;
  }
  bool object(const model::TreeObject& object, unsigned depth) override {
    if (json_)
      publish::append_tree_json(output_.buffer(), process_, object, depth);
    else
      publish::append_tree_line(output_.buffer(), object, depth);
    if (status_.ok()) status_ = output_.flush_if_full();
    return status_.ok();
  }
  Status take_status() { return std::move(status_); }

 private:
  State& state_;
  bool json_;
  Output& output_;
  publish::JsonOptions options_;
  model::TreeProcess process_;
  Status status_;
};

}  // namespace

Result<int> print_tree(const TreeRequest& request) {
  if (request.at != "peak" && request.at != "end")
    return Error(Code::kBadInput, "--at: '" + request.at + "' is not peak or end");
  if (request.file == "-" && request.at == "peak")
    return Error(Code::kBadInput, "--tree: standard input cannot be read twice; use --at end, or a file");
  State state;
  if (Status status = read(request, kAll, state); !status.ok()) return std::move(status.error());
  if (request.at == "peak") {
    State at_peak;
    if (Status status = read(request, state.peak_record, at_peak); !status.ok()) return std::move(status.error());
    state = std::move(at_peak);
  }
  Output output;
  Printer printer(state, request.json, output);
  state.story.tree().walk(printer);
  if (Status status = printer.take_status(); !status.ok()) return std::move(status.error());
  if (Status status = output.flush(); !status.ok()) return std::move(status.error());
  return 0;
}

}  // namespace gpuwatch::cli
