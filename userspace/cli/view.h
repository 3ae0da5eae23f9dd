// SPDX-License-Identifier: Apache-2.0
// View: turns records into the lines the user asked for. It owns the stages
// between source and output; it reads no file and writes to a buffer only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribute/allocation_watch.h"
#include "attribute/attributor.h"
#include "attribute/gpu_directory.h"
#include "cli/filter.h"
#include "cli/held_records.h"
#include "cli/privacy.h"
#include "cli/reports.h"
#include "cli/selection.h"
#include "decode/decoder.h"
#include "decode/describe.h"
#include "decode/story.h"
#include "pipeline/attribution_stats.h"
#include "pipeline/code_story.h"
#include "publish/json.h"
#include "publish/text.h"

namespace gpuwatch::cli {

struct ViewOptions {
  bool raw = false;
  bool json = false;
  bool fields = false;                      // with raw: every field of every call
  bool detail = false;                      // events of every kind, not only those for a person
  bool select_here = false;                 // apply the selection: a recording was not made with it
  bool live = false;                        // records are made on this machine, now
  attribute::Names* names = nullptr;        // what containers are called; outlives the view
  Privacy* privacy = nullptr;               // pseudonyms for names; outlives the view
  attribute::GpuDirectory* gpus = nullptr;  // which cards the minors are; outlives the view
  pipeline::CodeStory* code = nullptr;      // tells loads of GPU code; outlives the view
  Reports* reports = nullptr;               // takes everything instead of lines
  publish::TextOptions text;
  publish::JsonOptions json_options;
};

class View {
 public:
  View(ViewOptions options, model::DriverVersion driver, std::optional<Filter> filter, const Selection& selection);
  View(const View&) = delete;  // reports ask it who somebody is
  View& operator=(const View&) = delete;

  void header(std::string& out);

  // Appends what this record leads to; returns the number of lines, not
  // counting those of fields.
  std::size_t observe(const model::RawRecord& record, std::string& out);

  pipeline::AttributionStats stats() const;

  // What waited for more: when nothing came for a while, and at the end.
  std::size_t settle(std::uint64_t now_ns, std::string& out);
  std::size_t finish(std::string& out);

  const decode::Decoder& decoder() const { return decoder_; }
  bool driver_known() const { return driver_known_; }
  const decode::Describer* describer() const { return describer_ ? &*describer_ : nullptr; }
  const decode::StoryBuilder& story() const { return story_; }

 private:
  // Hands the call and its events on; a definition whatever the filter says.
  void report(const model::Call& call, bool wanted);
  // Lines of events_, each under the process it is about.
  std::size_t print(std::string& out);
  // Who made a call, without names where they are not wanted.
  model::Actor shown_actor(const gpuwatch_rec& head);
  bool on_chosen_card(const model::Call& call) const;
  // A record that is this program's to tell of, if the selection wants it.
  std::size_t admit(const model::RawRecord& record, std::string& out);
  // Keeps a record that may be wanted once its container has a name.
  void wait_for_name(const model::RawRecord& record, const model::Actor& actor);
  std::size_t release_held(std::string& out);
  template <typename Who>
  std::size_t show(const model::RawRecord& record, Who&& who, std::string& out);
  void note_gpu(const gpuwatch_rec& head, std::int32_t minor);
  void follow_gpus(const model::RawRecord& record);
  void learn_driver(const model::Call& call);
  // What the last of code_events_ tell of GPU code.
  std::size_t print_code(std::string& out);
  // Uses of GPUs that containers were not given, as far as they were found out.
  std::size_t print_unallocated(std::string& out);

  ViewOptions options_;
  std::optional<Filter> filter_;
  const Selection& selection_;
  attribute::Attributor attributor_;
  std::unique_ptr<attribute::AllocationWatch> allocation_;  // live, and for events only
  std::optional<HeldRecords> held_;                         // live, and where names choose
  decode::Decoder decoder_;
  bool driver_known_;  // else the stream may tell
  std::optional<decode::Describer> describer_;
  decode::StoryBuilder story_;
  std::vector<model::StoryEvent> events_;
  std::vector<model::StoryEvent> code_events_;
};

// Seconds east of UTC of local time at that moment.
std::int32_t local_utc_offset_s(std::uint64_t realtime_ns);

}  // namespace gpuwatch::cli
