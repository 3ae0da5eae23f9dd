// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/outside.h"

#include <algorithm>
#include <cstdio>

#include "base/escape.h"
#include "probe/agent/rights.h"
#include "probe/agent/wire.h"
#include "probe/outside/access.h"
#include "probe/outside/asked_files.h"
#include "probe/tool.h"

namespace gpuwatch::probe::outside {

namespace {

std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
  }
  return text;
}

std::string sm_text(const std::vector<std::uint32_t>& sms) {
  std::string text;
  for (const std::uint32_t sm : sms) text += (text.empty() ? "sm_" : " or sm_") + std::to_string(sm);
  return text;
}

class OutsideWay : public agent::Way {
 public:
  OutsideWay(const Prepared& prepared, TargetFiles& files, const Identity& identity)
      : prepared_(prepared), files_(files), identity_(identity) {}

  Failure load(Records& records) const {
    return prepared_.no_records ? prepared_.no_records : read_records(prepared_.records, identity_, records);
  }

  // Devices whose client is still the process's. `why`: what was said of another.
  Failure living(const Records& records, std::vector<Device>& out, std::string& why) const {
    for (const Device& device : records.facts.devices()) {
      int file = -1;
      std::string reason;
      if (Failure failure = file_of(files_, device.client, file, reason)) return failure;
      if (file >= 0)
        out.push_back(device);
      else
        why = reason;
    }
    return {};
  }

  Failure open(std::uint32_t number, std::unique_ptr<agent::CodeAccess>& access, std::vector<Span>& heap) override {
    // What was mapped since is in the records by now, up to what their writer holds back.
    Records records;
    if (Failure failure = load(records)) return failure;
    std::vector<Device> devices;
    std::string why;
    if (Failure failure = living(records, devices, why)) return failure;
    if (number >= devices.size()) return {Outcome::kNoGpu, "the context that was looked at is gone"};
    int file = -1;
    if (Failure failure = file_of(files_, devices[number].client, file, why)) return failure;
    if (file < 0) return {Outcome::kNoGpu, why};
    heap = heap_of(devices[number]);
    access = std::make_unique<OutsideAccess>(files_, file, devices[number]);
    return {};
  }

  std::string tool() const override { return prepared_.tool; }

 private:
  const Prepared& prepared_;
  TargetFiles& files_;
  const Identity& identity_;
};

void print_process(const agent::LiveOptions& options, const Records& records, std::size_t gpus, Report& report) {
  nlohmann::json object{{"type", "process"},
                        {"pid", options.pid},
                        {"read_by", report.read_by()},
                        {"recorder", records.recorder},
                        {"driver", base::to_utf8(records.driver)},
                        {"gpus", gpus},
                        {"ranges", records.facts.ranges()},
                        {"calls", records.calls},
                        {"lost_records", records.lost}};
  std::string text = "process " + std::to_string(options.pid) + ": read from outside by the driver, " +
                     std::to_string(gpus) + " GPU(s), " + std::to_string(records.facts.ranges()) +
                     " ranges mapped by " + std::to_string(records.calls) + " calls in the records";
  if (records.lost != 0) text += "; " + std::to_string(records.lost) + " records are lost, what they said is not known";
  if (records.facts.cut()) text += "; more objects, ranges or contexts than are kept";
  if (!records.end.empty()) {
    object["records_end"] = base::to_utf8(records.end);
    text += "; the records end where they are still being written, or were cut";
  }
  if (records.facts.cut()) object["cut"] = true;
  report.line(object, text);
}

}  // namespace

Prepared prepare(const agent::LiveOptions& options) {
  Prepared out;
  out.no_records = open_records(options.records, out.records);
  if (out.no_records) return out;
  out.tool = watching_tool("/proc/" + std::to_string(options.pid));
  out.no_sources = options.image.empty() ? agent::sources_of_process(options.pid, out.sources)
                                         : agent::source_of_file(options.image, out.sources);
  return out;
}

Failure look_into(const agent::LiveOptions& options, const Prepared& prepared, TargetFiles& files,
                  const Identity& process, Report& report, bool& finding) {
  report.set_read_by("driver");
  OutsideWay way(prepared, files, process);
  Records records;
  if (Failure failure = way.load(records)) return failure;
  std::vector<Device> devices;
  std::string why;
  if (Failure failure = way.living(records, devices, why)) return failure;
  print_process(options, records, devices.size(), report);
  if (devices.empty() && !why.empty()) return {Outcome::kNoGpu, "not-probed: " + why};
  if (devices.empty())
    return {Outcome::kNoGpu,
            "the records have no debugger object of this process, which libcuda makes in each context: it has no "
            "context, or they begin after that, or they hold too little of each call (the recorder without a capture "
            "plan): "
            "record it from its start with gpuwatch record"};
  if (options.gpu >= static_cast<int>(devices.size()))
    return {Outcome::kNoGpu, "the process has no context on a GPU of that number"};
  if (prepared.no_sources) return prepared.no_sources;
  for (std::uint32_t number = 0; number < devices.size(); ++number) {
    if (options.gpu >= 0 && number != static_cast<std::uint32_t>(options.gpu)) continue;
    const Device& device = devices[number];
    const std::vector<std::uint32_t> sms = sms_of(device.compute_class);
    if (sms.empty()) {
      char text[96];
      std::snprintf(text, sizeof text, "not-probed: which SM a GPU of compute class 0x%x has is not known",
                    device.compute_class);
      return {Outcome::kTrouble, text};
    }
    nlohmann::json object{{"type", "gpu"}, {"gpu", number}, {"sm", sms.front()}};
    std::string text = "GPU " + std::to_string(number) + " of the process: " + sm_text(sms);
    if (device.uuid != Uuid{}) {
      object["uuid"] = uuid_text(device.uuid);
      text += ", " + uuid_text(device.uuid);
    }
    report.line(object, text);
    if (Failure failure = agent::compare_device(options, way, number, sms, prepared.sources, report, finding))
      return failure;
  }
  return {};
}

int probe_process(const agent::LiveOptions& options, Report& report) {
  if (options.records.empty())
    return report.failure(
        {Outcome::kTrouble, "--outside wants --records: what the process has in the driver is learnt from them"}, -1);
  ProcessFiles files(options.pid);
  Identity process;
  if (Failure failure = files.open(process)) return report.failure(failure, -1);
  const Prepared prepared = prepare(options);
  const Window window(agent::kReadMax);
  if (window.bytes().empty()) return report.failure({Outcome::kTrouble, "no memory for what the driver reads"}, -1);
  ServedFiles served(files, window.bytes());
  return agent::run_without_rights(
      [&](std::span<const std::uint8_t> request, agent::Told& told) { return served.serve(request, told); },
      [&](agent::Parent& parent) {
        AskedFiles asked(parent, window.bytes());
        bool finding = false;
        if (Failure failure = look_into(options, prepared, asked, process, report, finding))
          return report.failure(failure, -1);
        return static_cast<int>(finding ? Outcome::kFinding : Outcome::kOk);
      });
}

}  // namespace gpuwatch::probe::outside
