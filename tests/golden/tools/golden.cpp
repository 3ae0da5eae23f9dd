// SPDX-License-Identifier: Apache-2.0
// What the making of golden recordings needs beside the recorder: the capture
// plan as a file, a .gwcap from shards brought home from the GPU machine, and
// a count of what a recording holds. For developers; not installed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "decode/capture_plan.h"
#include "model/definitions.h"
#include "preload/plan_file.h"
#include "preload/shards.h"
#include "source/gwcap.h"

namespace {

using namespace gpuwatch;

int fail(const base::Error& error) {
  std::fprintf(stderr, "golden: %s\n", error.message().c_str());
  return 2;
}

int write_plan(const std::string& version, const std::string& path) {
  const auto parsed = model::parse_driver_version(version);
  if (!parsed) return fail(base::Error(base::Code::kBadInput, version + ": not a driver version"));
  const auto plan = decode::make_capture_plan(*parsed);
  const auto status = preload::write_plan_file(path, plan.entries, plan.sizes, plan.default_bytes);
  return status.ok() ? 0 : fail(status.error());
}

struct Rename {
  std::string from, to;
};

// Replaces the start of the path in a TASK record; "cgroup=PATH" the whole path
// of every CGROUP record; in an IMAGE record, whose file follows at no fixed
// place, whatever is replaced by as many bytes.
std::vector<std::byte> rename_path(const model::RawRecord& record, model::Bytes bytes,
                                   const std::vector<Rename>& renames) {
  std::vector<std::byte> out(bytes.begin(), bytes.end());
  if (record.head.type == GPUWATCH_REC_IMAGE)
    for (const Rename& rename : renames) {
      if (rename.from.empty() || rename.from.size() != rename.to.size()) continue;
      const std::string_view text(reinterpret_cast<const char*>(out.data()), out.size());
      for (std::size_t at = text.find(rename.from); at != std::string_view::npos; at = text.find(rename.from, at + 1))
        std::memcpy(out.data() + at, rename.to.data(), rename.to.size());
    }
  const bool task = record.head.type == GPUWATCH_REC_TASK;
  if (!task && record.head.type != GPUWATCH_REC_CGROUP) return out;
  const std::size_t fixed = task ? sizeof(gpuwatch_rec_task) : sizeof(gpuwatch_rec_cgroup);
  const std::size_t length_at = task ? offsetof(gpuwatch_rec_task, path_len) : offsetof(gpuwatch_rec_cgroup, path_len);
  const auto length = model::read_at<std::uint32_t>(record.payload, length_at);
  if (!length || *length > record.payload.size() - fixed) return out;
  std::string path(reinterpret_cast<const char*>(record.payload.data()) + fixed, *length);
  for (const Rename& rename : renames) {
    if (!task && rename.from == "cgroup") path = rename.to;
    if (task && path.compare(0, rename.from.size(), rename.from) == 0) path.replace(0, rename.from.size(), rename.to);
  }
  out.resize(sizeof(gpuwatch_rec) + fixed);
  const auto* text = reinterpret_cast<const std::byte*>(path.data());
  out.insert(out.end(), text, text + path.size());
  out.resize((out.size() + 7) & ~std::size_t{7});
  // What follows the path stays.
  const std::size_t rest = std::min(record.payload.size(), (fixed + *length + 7) & ~std::size_t{7});
  out.insert(out.end(), record.payload.begin() + static_cast<std::ptrdiff_t>(rest), record.payload.end());
  const std::uint32_t len = static_cast<std::uint32_t>(out.size()), path_len = static_cast<std::uint32_t>(path.size());
  std::memcpy(out.data() + offsetof(gpuwatch_rec, len), &len, sizeof len);
  std::memcpy(out.data() + sizeof(gpuwatch_rec) + length_at, &path_len, sizeof path_len);
  return out;
}

int convert(const std::string& shards, const std::string& header_path, const std::string& out,
            const std::vector<Rename>& renames) {
  std::ifstream in(header_path);
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  auto header = source::header_from_json(json);
  if (!header.ok()) return fail(header.error());
  auto recording = preload::read_shards(shards);
  if (!recording.ok()) return fail(recording.error());
  source::GwcapOptions options;
  options.force = true;
  options.level = 19;
  options.block_bytes = source::kGwcapRawMax < (1u << 20) ? source::kGwcapRawMax : 1u << 20;
  auto writer = source::GwcapWriter::create(out, *header, options);
  if (!writer.ok()) return fail(writer.error());
  for (model::Bytes rest(recording->bytes); !rest.empty();) {
    const auto record = model::parse_record(rest);
    if (!record) return fail(base::Error(base::Code::kBadInput, "merged stream is not made of records"));
    const auto bytes = rename_path(*record, rest.first(record->head.len), renames);
    if (auto status = writer->append(bytes); !status.ok()) return fail(status.error());
    rest = rest.subspan(record->head.len);
  }
  source::GwcapFooter footer;
  footer.lost.by_reason[GPUWATCH_LOSS_RING_FULL] = recording->lost_full;
  footer.lost.by_reason[GPUWATCH_LOSS_TOO_BIG] = recording->lost_too_big;
  for (const auto& program : recording->not_followed)
    footer.notes.push_back("not followed: " + program.path + " (" + program.reason + ")");
  if (auto status = writer->finish(footer); !status.ok()) return fail(status.error());
  std::printf(
      "%s: %llu records of %llu processes, lost %llu, unfinished %llu, adopted %llu, killed %llu, plan errors %llu, "
      "damaged %llu, %llu bytes\n",
      out.c_str(), static_cast<unsigned long long>(recording->records),
      static_cast<unsigned long long>(recording->processes), static_cast<unsigned long long>(recording->lost()),
      static_cast<unsigned long long>(recording->unfinished), static_cast<unsigned long long>(recording->adopted),
      static_cast<unsigned long long>(recording->killed), static_cast<unsigned long long>(recording->plan_errors),
      static_cast<unsigned long long>(recording->damaged_bytes), static_cast<unsigned long long>(writer->file_bytes()));
  return 0;
}

// Copies a recording with paths renamed, the kernel release cut to two numbers,
// and what completed later than `seconds` after its first record left out.
int edit(const std::string& from, const std::string& to, double seconds, const std::vector<Rename>& renames) {
  auto reader = source::GwcapReader::open(from);
  if (!reader.ok()) return fail(reader.error());
  source::GwcapHeader header = reader->header();
  header.kernel_release =
      header.kernel_release.substr(0, header.kernel_release.find('.', header.kernel_release.find('.') + 1));
  source::GwcapOptions options;
  options.force = true;
  options.level = 19;
  auto writer = source::GwcapWriter::create(to, header, options);
  if (!writer.ok()) return fail(writer.error());
  reader->keep_images();
  std::uint64_t first_ns = 0, left_out = 0;
  for (;;) {
    auto next = reader->next();
    if (!next.ok()) return fail(next.error());
    if (!*next) break;
    const model::RawRecord& record = **next;
    if (first_ns == 0) first_ns = record.begin_ns();
    if (record.head.time_ns > first_ns && static_cast<double>(record.head.time_ns - first_ns) > seconds * 1e9) {
      ++left_out;
      continue;
    }
    if (const auto image = model::parse_image(record); image && image->fixed.id != 0) {
      auto content = reader->take_image(image->fixed.id);
      if (content.ok() && !content->empty())
        if (auto kept = writer->append_image(image->fixed.id, *content); !kept.ok()) return fail(kept.error());
    }
    std::vector<std::byte> bytes(record.head.len);
    std::memcpy(bytes.data(), &record.head, sizeof record.head);
    std::memcpy(bytes.data() + sizeof record.head, record.payload.data(), record.payload.size());
    if (auto status = writer->append(rename_path(record, bytes, renames)); !status.ok()) return fail(status.error());
  }
  if (!reader->footer()) return fail(base::Error(base::Code::kBadInput, from + ": has no end"));
  source::GwcapFooter footer = *reader->footer();
  if (left_out > 0) footer.notes.push_back("cut: " + std::to_string(left_out) + " later records left out");
  if (auto status = writer->finish(footer); !status.ok()) return fail(status.error());
  std::printf("%s: %llu records, %llu left out, %llu bytes\n", to.c_str(),
              static_cast<unsigned long long>(writer->records()), static_cast<unsigned long long>(left_out),
              static_cast<unsigned long long>(writer->file_bytes()));
  return 0;
}

const char* const kTypes[] = {"?", "open", "ioctl", "mmap", "release", "task", "cgroup", "state", "image"};
const char* const kNodes[] = {"other",   "ctl",  "gpu",  "uvm",      "uvm-tools",
                              "modeset", "caps", "imex", "nvswitch", "nvlink"};

// Counts by what was called, as a JSON object; exit 1 when it is incomplete.
int count(const std::string& path) {
  auto reader = source::GwcapReader::open(path);
  if (!reader.ok()) return fail(reader.error());
  std::map<std::string, std::uint64_t> calls;
  std::uint64_t faults = 0, capped = 0;
  std::uint64_t first_ns = UINT64_MAX, last_ns = 0;  // begin and end of calls
  std::map<std::uint32_t, bool> processes;
  for (;;) {
    auto next = reader->next();
    if (!next.ok()) return fail(next.error());
    if (!*next) break;
    const auto& record = **next;
    std::string name = record.head.type < std::size(kTypes) ? kTypes[record.head.type] : "?";
    if (record.head.type <= GPUWATCH_REC_RELEASE) {
      name += std::string(" ") + kNodes[record.head.node_kind < std::size(kNodes) ? record.head.node_kind : 0];
      processes[record.head.tgid] = true;
      first_ns = std::min(first_ns, record.begin_ns());
      last_ns = std::max<std::uint64_t>(last_ns, record.head.time_ns);
    }
    if (const auto view = model::parse_ioctl(record)) {
      char number[16];
      std::snprintf(number, sizeof number, " 0x%x", view->fixed.cmd);
      name += number;
      for (std::size_t i = 0; i < view->count; ++i) {
        faults += (view->captures[i].head.flags & GPUWATCH_CAPF_FAULT) != 0;
        capped += (view->captures[i].head.flags & GPUWATCH_CAPF_CAPPED) != 0;
      }
    }
    ++calls[name];
  }
  const auto& footer = reader->footer();
  std::uint64_t lost = 0;
  if (footer) lost = footer->lost.total();
  std::ostringstream out;
  out << "{\"records\": " << reader->records() << ", \"processes\": " << processes.size() << ", \"lost\": " << lost
      << ", \"first_ns\": " << first_ns << ", \"last_ns\": " << last_ns << ", \"unreadable_captures\": " << faults
      << ", \"capped_captures\": " << capped << ", \"calls\": {";
  const char* separator = "";
  for (const auto& [name, n] : calls) {
    out << separator << '"' << name << "\": " << n;
    separator = ", ";
  }
  out << "}}";
  std::puts(out.str().c_str());
  return footer && footer->clean_end && lost == 0 ? 0 : 1;
}

// Raw bytes of all records, for looking what words are inside.
int cat(const std::string& path) {
  auto reader = source::GwcapReader::open(path);
  if (!reader.ok()) return fail(reader.error());
  for (;;) {
    auto next = reader->next();
    if (!next.ok()) return fail(next.error());
    if (!*next) return 0;
    std::fwrite(&(*next)->head, sizeof(gpuwatch_rec), 1, stdout);
    std::fwrite((*next)->payload.data(), 1, (*next)->payload.size(), stdout);
  }
}

std::vector<Rename> renames_in(const std::vector<std::string>& args) {
  std::vector<Rename> renames;
  for (std::size_t i = 4; i < args.size(); ++i)
    if (const std::size_t at = args[i].find('='); at != std::string::npos)
      renames.push_back({args[i].substr(0, at), args[i].substr(at + 1)});
  return renames;
}

int run(const std::vector<std::string>& args) {
  if (args.size() == 3 && args[0] == "plan") return write_plan(args[1], args[2]);
  if (args.size() == 2 && args[0] == "count") return count(args[1]);
  if (args.size() == 2 && args[0] == "cat") return cat(args[1]);
  if (args.size() >= 4 && args[0] == "convert") return convert(args[1], args[2], args[3], renames_in(args));
  if (args.size() >= 4 && args[0] == "edit")
    return edit(args[1], args[2], std::strtod(args[3].c_str(), nullptr), renames_in(args));
  std::fputs(
      "usage: golden plan DRIVER-VERSION OUT\n"
      "       golden convert SHARD-DIR HEADER.json OUT.gwcap [OLD-PATH-START=NEW | cgroup=PATH]...\n"
      "       golden edit FILE.gwcap OUT.gwcap SECONDS [OLD-PATH-START=NEW | cgroup=PATH]...\n"
      "       golden count FILE.gwcap\n"
      "       golden cat FILE.gwcap\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {  // of the standard library: out of memory
    std::fprintf(stderr, "golden: %s\n", error.what());
    return 2;
  }
}
