// SPDX-License-Identifier: Apache-2.0
// StoryTest: makes the calls of a few processes and gives back what they told.
#pragma once

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "decode/decoder.h"
#include "decode/story.h"
#include "unit/decode/calls.h"

namespace gpuwatch::test {

inline constexpr std::uint32_t kClient = 0xC1D00024;

inline std::vector<model::StoryKind> kinds_of(const std::vector<model::StoryEvent>& events) {
  std::vector<model::StoryKind> kinds;
  for (const model::StoryEvent& event : events) kinds.push_back(event.kind);
  return kinds;
}

// A test that asks for a body that is not there fails by exception.
template <typename Body>
const Body& body_of(const std::vector<model::StoryEvent>& events, std::size_t at = 0) {
  return std::get<Body>(events.at(at).body);
}
template <typename Body>
Body body_of(std::vector<model::StoryEvent>&& events, std::size_t at = 0) {
  return std::get<Body>(events.at(at).body);
}

class StoryTest : public testing::Test {
 protected:
  using Events = std::vector<model::StoryEvent>;

  // Calls from here on are those of this process; its latest client is used.
  void as_process(std::uint32_t tgid, std::uint64_t start_ns = 0) {
    tgid_ = tgid;
    start_ns_ = start_ns;
    client_ = kClient;
    file_ = 5;
  }
  Events feed(Blob blob) {
    gpuwatch_rec head;
    std::memcpy(&head, blob.data(), sizeof head);
    if (head.tgid == 7) head.tgid = tgid_;
    head.start_ns = start_ns_;
    head.file_id = head.file_id == 5 ? file_ : head.file_id;
    std::memcpy(blob.data(), &head, sizeof head);
    Events out;
    story.observe(decoder.decode(parsed(blob)), out);
    return out;
  }
  Events alloc(std::uint32_t parent, std::uint32_t handle, std::uint32_t rm_class, const std::string& params = {},
               std::uint32_t status = 0) {
    const bool root = rm_class == 0;
    const Argument in =
        Argument(48).u32(0, root ? 0 : client_).u32(4, parent).u32(8, root ? 0 : handle).u32(12, rm_class);
    Argument out = in;
    out.u32(8, handle).u32(40, status);
    std::vector<CaptureSpec> more;
    if (!params.empty()) more = {{GPUWATCH_CAP_NESTED0_IN, params}, {GPUWATCH_CAP_NESTED0_OUT, params}};
    return feed(escape_call(head_on(GPUWATCH_NODE_CTL, 255), 43, in, out, more));
  }
  Events free_object(std::uint32_t handle) {
    const Argument argument = Argument(16).u32(0, client_).u32(4, client_).u32(8, handle);
    return feed(escape_call(head_on(GPUWATCH_NODE_CTL, 255), 41, argument, argument));
  }
  Events control(std::uint32_t object, std::uint32_t command, std::uint32_t status = 0) {
    const Argument in = Argument(32).u32(0, client_).u32(4, object).u32(8, command);
    Argument out = in;
    out.u32(28, status);
    return feed(escape_call(head_on(GPUWATCH_NODE_CTL, 255), 42, in, out));
  }
  Events control_with(std::uint32_t object, std::uint32_t command, const Argument& params) {
    const Argument argument = Argument(32).u32(0, client_).u32(4, object).u32(8, command);
    return feed(escape_call(head_on(GPUWATCH_NODE_CTL, 255), 42, argument, argument,
                            {{GPUWATCH_CAP_NESTED0_IN, params.bytes()}, {GPUWATCH_CAP_NESTED0_OUT, params.bytes()}}));
  }
  Events memory(std::uint32_t handle, std::uint64_t bytes, std::uint32_t rm_class = 0x40) {
    return alloc(2, handle, rm_class, Argument(128).u64(64, bytes).bytes());
  }
  Events dup(std::uint32_t handle, std::uint32_t from_client, std::uint32_t from_object) {
    const Argument argument =
        Argument(28).u32(0, client_).u32(4, 2).u32(8, handle).u32(12, from_client).u32(16, from_object);
    return feed(escape_call(head_on(GPUWATCH_NODE_CTL), 52, argument, argument));
  }
  Events map(std::uint32_t client, std::uint32_t object) {
    return feed(uvm_call(33, Argument(9264).u64(0, 0x7000).u64(8, 4096).u32(9252, client).u32(9256, object)));
  }
  // A channel group with channels that each have an engine object.
  void group(std::uint32_t handle, std::uint32_t vaspace, const std::vector<std::uint32_t>& channels,
             std::uint32_t engine_class) {
    alloc(2, handle, 0xA06C, Argument(20).u32(8, vaspace).u32(12, 1).bytes());
    for (const std::uint32_t channel : channels) {
      alloc(handle, channel, 0xC86F, Argument(368).u32(16, 1024).bytes());
      alloc(channel, channel + 1000, engine_class);
    }
  }
  Events schedule(std::uint32_t group) { return control(group, 0xA06C0101); }
  Events open(gpuwatch_node_kind kind, std::uint32_t minor, std::uint64_t file, std::int64_t ret = 0) {
    gpuwatch_rec head = head_on(kind, minor);
    head.file_id = file;
    return feed(open_record(head, ret));
  }
  Events release(gpuwatch_node_kind kind, std::uint32_t minor, std::uint64_t file, std::uint32_t tgid = 7) {
    gpuwatch_rec head = head_on(kind, minor);
    head.type = GPUWATCH_REC_RELEASE;
    head.file_id = file;
    head.tgid = tgid;
    return feed(finish_record(head, Blob(8)));
  }
  // A client on its own file, with device 2 of instance 1.
  void start_client(std::uint32_t client = kClient, std::uint64_t file = 5) {
    client_ = client;
    file_ = file;
    open(GPUWATCH_NODE_CTL, 255, file);
    alloc(0, client, 0);
    alloc(client, 2, 0x80, Argument(56).u32(0, 1).bytes());
  }

  decode::Decoder decoder{{580, 159, 4}};
  decode::StoryBuilder story;
  std::uint32_t client_ = kClient;
  std::uint64_t file_ = 5;
  std::uint32_t tgid_ = 7;
  std::uint64_t start_ns_ = 0;
};

}  // namespace gpuwatch::test
