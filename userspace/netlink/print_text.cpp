// SPDX-License-Identifier: Apache-2.0
// See print.h. Columns: time, who, what.
#include <linux/gpuwatch_genl.h>

#include "netlink/print.h"
#include "publish/colour.h"
#include "publish/format.h"
#include "publish/text.h"
#include "publish/words.h"

namespace gpuwatch::netlink {

namespace {

namespace colour = publish::colour;
namespace format = publish::format;

constexpr std::size_t kWhoColumn = 13;
constexpr std::size_t kWhatColumn = 38;

void append_clock(std::string& out, std::uint64_t realtime_ns, const TextStyle& style) {
  // Wall-clock time needs an offset; the message's own clock is that already.
  format::append_time(out, realtime_ns - 1, 1, style.utc_offset_s, 3);
}

void append_who(std::string& out, std::string_view comm, std::optional<std::uint32_t> pid) {
  if (comm.empty()) comm = pid ? "pid" : "-";
  publish::append_word(out, comm);
  if (!pid) return;
  out += '/';
  format::append_number(out, *pid);
}

void append_error(std::string& out, const std::optional<std::int32_t>& result) {
  if (!result || *result >= 0) return;
  out += " failed: ";
  format::append_errno(out, *result);
}

void append_node(std::string& out, const Event& event) {
  const std::uint32_t kind = event.node_kind.value_or(0);
  if (event.gpu_minor) {
    out += "nvidia" + std::to_string(*event.gpu_minor);
  } else {
    out += named(node_word(kind), kind);
  }
}

void append_what(std::string& out, const Event& event) {
  out += named(event_word(event.kind), static_cast<std::uint32_t>(event.kind));
  switch (event.kind) {
    case EventKind::kOpen:
    case EventKind::kClose:
      append_node(out += ' ', event);
      break;
    case EventKind::kImage:
      out += ' ' + named(image_word(event.image_kind.value_or(0)), event.image_kind.value_or(0)) + ' ';
      publish::append_bytes(out, event.image_bytes.value_or(0));
      out += " by ";
      publish::append_word(out, event.symbol);
      break;
    case EventKind::kHooked:
    case EventKind::kHookFailed:
      out += ' ';
      publish::append_word(out, event.module);
      out += ' ' + named(op_word(event.value.value_or(0)), event.value.value_or(0));
      break;
    case EventKind::kDriverLive:
    case EventKind::kDriverGoing:
      out += ' ';
      publish::append_word(out, event.module);
      break;
    case EventKind::kAttached:
      out += ", " + std::to_string(event.value.value_or(0)) + " functions known";
      break;
    case EventKind::kPlan:
      out += " number " + std::to_string(event.value.value_or(0));
      break;
    default:
      for (const LossCount& loss : event.losses)
        out += ' ' + named(cause_word(loss.cause), loss.cause) + ' ' + std::to_string(loss.count);
  }
  append_error(out, event.result);
}

void write(std::string& out, std::size_t from, const Event& event, const TextStyle& style) {
  append_clock(out, event.stamp.realtime_ns, style);
  format::pad_to(out, from, kWhoColumn);
  append_who(out, event.comm, event.pid);
  format::pad_to(out, from, kWhatColumn);
  const bool bad = event.kind == EventKind::kLoss || event.kind == EventKind::kHookFailed;
  const colour::Scope scope(out, style.colour && bad, colour::kRed);
  append_what(out, event);
}

void write(std::string& out, std::size_t from, const Verdict& verdict, const TextStyle& style) {
  const VerdictMessage& said = verdict.said;
  append_clock(out, verdict.stamp.realtime_ns, style);
  format::pad_to(out, from, kWhoColumn);
  append_who(out, "", said.pid);
  format::pad_to(out, from, kWhatColumn);
  const colour::Scope scope(out, style.colour && said.severity >= Severity::kError, colour::kRed);
  out += named(severity_word(said.severity), static_cast<std::uint32_t>(said.severity));
  out += ": " + named(verdict_word(said.verdict), static_cast<std::uint32_t>(said.verdict));
  if (!said.rule.empty()) publish::append_word(out += " rule=", said.rule);
  if (!said.container.empty()) publish::append_word(out += " container=", said.container);
  if (said.gpu_minor) out += " nvidia" + std::to_string(*said.gpu_minor);
  if (!said.text.empty()) publish::append_quoted(out += ' ', said.text);
  out += " (by pid " + std::to_string(verdict.submitter_pid) + ", uid " + std::to_string(verdict.submitter_uid) + ")";
}

void write(std::string& out, std::size_t from, const Heartbeat& beat, const TextStyle& style) {
  append_clock(out, beat.stamp.realtime_ns, style);
  format::pad_to(out, from, kWhoColumn);
  out += '-';
  format::pad_to(out, from, kWhatColumn);
  const colour::Scope scope(out, style.colour, colour::kDim);
  out += "heartbeat of " + std::string(group_name(beat.group)) + ", last number " + std::to_string(beat.stamp.seq);
}

void write(std::string& out, std::size_t from, const Loss& loss, const TextStyle& style) {
  append_clock(out, loss.realtime_ns, style);
  format::pad_to(out, from, kWhoColumn);
  out += '-';
  format::pad_to(out, from, kWhatColumn);
  const colour::Scope scope(out, style.colour, colour::kRed);
  out += "lost ";
  out += loss.count ? std::to_string(*loss.count) : std::string("some");
  out += " of " + std::string(group_name(loss.group)) + ": " + std::string(loss_reason_word(loss.reason));
}

void write(std::string& out, std::size_t from, const Membership& membership, const TextStyle& style) {
  append_clock(out, membership.realtime_ns, style);
  format::pad_to(out, from, kWhoColumn);
  out += '-';
  format::pad_to(out, from, kWhatColumn);
  out += membership.joined ? "module is back, joined " : "module was unloaded, waiting for it: ";
  out += group_name(membership.group);
}

}  // namespace

void append_text(std::string& out, const Item& item, const TextStyle& style) {
  const std::size_t from = out.size();
  std::visit([&](const auto& one) { write(out, from, one, style); }, item);
  out += '\n';
}

std::string loss_summary(const Subscriber::Totals& totals) {
  std::string line =
      "lost " + std::to_string(totals.lost) + " of " + std::to_string(totals.messages + totals.lost) + " messages";
  if (totals.overruns != 0)
    line += ": buffer overrun " + std::to_string(totals.overruns) + (totals.overruns == 1 ? " time" : " times");
  if (totals.uncounted) line += ", the last one not counted yet";
  if (totals.damaged != 0) line += "; " + std::to_string(totals.damaged) + " could not be read";
  return line;
}

}  // namespace gpuwatch::netlink
