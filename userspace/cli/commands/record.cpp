// SPDX-License-Identifier: Apache-2.0
// `gpuwatch record` from the kernel module: everything into a file, or the
// last part of it on demand. Recording one command is record_command.cpp's.
#include <poll.h>

#include <bit>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/record_command.h"
#include "cli/signals.h"
#include "model/definitions.h"
#include "pipeline/image_places.h"
#include "source/gwcap.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::chrono::milliseconds kPollTimeout{100};

std::uint64_t deadline_of(const Flags& flags) {
  const auto duration = flags.duration("duration");
  return duration ? base::monotonic_ns() + static_cast<std::uint64_t>(duration->count()) : ~std::uint64_t{0};
}

// Stores the bytes of the images whose records come, as far as there are any.
class ImageKeeper {
 public:
  ImageKeeper(source::Source& source, source::GwcapWriter& writer) : source_(source), writer_(writer) {}

  Status observe(const model::RawRecord& record) {
    if (record.head.type != GPUWATCH_REC_IMAGE) return {};
    const auto image = model::parse_image(record);
    if (!image || image->fixed.kind == GPUWATCH_IMAGE_CALL) return {};
    if (image->fixed.id == 0) {
      // The file of a path is the loader's to read, not ours to keep.
      if (image->fixed.kind != GPUWATCH_IMAGE_PATH) ++not_captured_;
      return {};
    }
    auto bytes = source_.take_image(image->fixed);
    if (!bytes) {
      if (missing_++ == 0) say(bytes.error().message());
      return {};
    }
    auto kept = writer_.append_image(image->fixed.id, bytes->bytes());
    if (!kept) return std::move(kept.error());
    ++(*kept ? stored_ : left_out_);
    return {};
  }

  // The record, and where its image lies: nobody can ask the process later.
  Status append(const model::RawRecord& record) {
    if (record.head.type != GPUWATCH_REC_IMAGE) return writer_.append(record);
    const auto image = model::parse_image(record);
    if (!image) return writer_.append(record);
    const pipeline::PlaceOfImage place = places_.find(record.head, image->fixed);
    if (place.place == model::ImagePlace::kUnknown) return writer_.append(record);
    model::RawRecord longer = record;
    const std::vector<std::byte> payload = pipeline::with_place(record, place, longer.head.len);
    longer.payload = payload;
    return writer_.append(longer);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (not_captured_ > 0) notes.push_back(std::to_string(not_captured_) + " images were not captured by the module");
    if (missing_ > 0) notes.push_back(std::to_string(missing_) + " images were gone before they could be fetched");
    if (left_out_ > 0) notes.push_back(std::to_string(left_out_) + " images were left out, over --images-max");
    return notes;
  }

  std::uint64_t stored() const { return stored_; }
  std::uint64_t lost() const { return not_captured_ + missing_; }

 private:
  source::Source& source_;
  source::GwcapWriter& writer_;
  pipeline::ImagePlaces places_;
  std::uint64_t stored_ = 0;
  std::uint64_t not_captured_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t left_out_ = 0;
};

Result<int> record_all(const Flags& flags, Selection& selection, const source::GwcapOptions& options) {
  const std::string path = flags.text("output");
  auto source = start_live(flags, selection, GPUWATCH_MODE_DROP_NEWEST);
  if (!source) return std::move(source.error());
  source::GwcapHeader header = (*source)->header();
  header.label = flags.text("label");
  auto writer = source::GwcapWriter::create(path, header, options);
  if (!writer) return std::move(writer.error());
  if (!flags.has("no-images")) start_images(selection, **source, true);
  ImageKeeper images(**source, *writer);
  say("recording to " + path + (flags.has("duration") ? "" : "; Ctrl-C ends it"));

  const std::uint64_t deadline = deadline_of(flags);
  std::vector<model::RawRecord> batch;
  Status status;
  while (status.ok() && !(*source)->ended()) {
    if (stop_wanted() || base::monotonic_ns() >= deadline) status = (*source)->stop();
    if (status.ok()) status = (*source)->next_batch(batch);
    for (const model::RawRecord& record : batch) {
      if (!status.ok()) break;
      status = images.observe(record);
      if (status.ok()) status = images.append(record);
    }
    if (status.ok() && batch.empty()) status = writer->flush_stale();
    if (status.ok() && batch.empty()) status = (*source)->wait(kPollTimeout);
  }
  source::GwcapFooter footer;
  footer.lost = (*source)->lost();
  footer.clean_end = status.ok();
  footer.notes = images.notes();
  // A full disk was told by status already; another source's trouble still
  // deserves a footer.
  const Status finished = writer->finish(footer);
  if (!status.ok()) return std::move(status.error());
  if (!finished.ok()) return finished.error();
  say(path + ": " + std::to_string(writer->records()) + " records, " + std::to_string(images.stored()) + " images, " +
      std::to_string(writer->file_bytes()) + " bytes");
  for (const std::string& note : footer.notes) say(note);
  say(loss_line(footer.lost, writer->records()));
  return footer.lost.total() + images.lost() > 0 ? kExitFinding : kExitOk;
}

// Writes what the rings hold now.
Status dump(source::KmodSource& source, const std::string& path, const std::string& label,
            const source::GwcapOptions& options) {
  source::GwcapHeader header = source.header();
  header.label = label;
  auto writer = source::GwcapWriter::create(path, header, options);
  if (!writer) return std::move(writer.error());
  Status status = source.snapshot([&](const model::RawRecord&, model::Bytes whole) { return writer->append(whole); });
  source::GwcapFooter footer;
  footer.lost = source.lost();
  footer.clean_end = status.ok();
  footer.notes = {"flight recorder: older records were overwritten by intent"};
  const Status finished = writer->finish(footer);
  if (!status.ok()) return status;
  if (finished.ok()) say(path + ": " + std::to_string(writer->records()) + " records");
  return finished;
}

// Dumps on SIGUSR1 go to FILE.1, FILE.2, ...; the one at the end to FILE.
Result<int> record_flight(const Flags& flags, Selection& selection, const source::GwcapOptions& options) {
  const std::uint64_t mebibytes = *flags.number("flight-recorder");
  if (mebibytes == 0 || mebibytes > (source::kRingMax >> 20))
    return Error(Code::kBadInput,
                 "--flight-recorder: from 1 to " + std::to_string(source::kRingMax >> 20) + " MiB per CPU");
  const std::string path = flags.text("output");
  const std::string label = flags.text("label");
  // Found out now rather than when the dump is wanted.
  if (!options.force && ::access(path.c_str(), F_OK) == 0)
    return Error(Code::kIo, path + ": exists; choose another name, or pass --force to replace it", EEXIST);
  auto source = start_live(flags, selection, GPUWATCH_MODE_OVERWRITE, std::bit_ceil(mebibytes << 20));
  if (!source) return std::move(source.error());
  say("flight recorder on; SIGUSR1 writes " + path + ".1 and so on, the end writes " + path);
  const std::uint64_t deadline = deadline_of(flags);
  unsigned dumps = 0;
  while (!stop_wanted() && base::monotonic_ns() < deadline) {
    if (take_dump_wanted())
      if (Status status = dump(**source, path + "." + std::to_string(++dumps), label, options); !status.ok())
        say(status.error().message());
    // The rings are always readable in this mode, so poll() on them would not
    // sleep; a signal ends this wait early.
    ::poll(nullptr, 0, static_cast<int>(kPollTimeout.count()));
  }
  if (Status status = (*source)->stop(); !status.ok()) return std::move(status.error());
  if (Status status = dump(**source, path, label, options); !status.ok()) return std::move(status.error());
  model::LossCounts lost = (*source)->lost();
  lost.by_reason[GPUWATCH_LOSS_OVERWRITTEN] = 0;  // by intent
  return lost.total() > 0 ? kExitFinding : kExitOk;
}

}  // namespace

Result<int> run_record(const Flags& flags) {
  if (flags.text("output").empty()) return Error(Code::kBadInput, "record: name the file to write with -o FILE");
  source::GwcapOptions options;
  options.force = flags.has("force");
  options.image_budget_bytes = flags.number("images-max").value_or(options.image_budget_bytes);
  if (!flags.rest().empty()) return record_command(flags, options);
  auto selection = Selection::from_flags(flags);
  if (!selection) return std::move(selection.error());
  if (flags.has("flight-recorder")) return record_flight(flags, *selection, options);
  return record_all(flags, *selection, options);
}

}  // namespace gpuwatch::cli
