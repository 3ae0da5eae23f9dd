// SPDX-License-Identifier: Apache-2.0
#include "preload/images.h"

#include "harness.h"

namespace gpuwatch::preload {
namespace {

using model::Bytes;
using model::RawRecord;

class Images : public Recorded {
 protected:
  struct Load {
    gpuwatch_rec_image fixed{};
    std::string head, symbol, bytes;
    gw_image_file file{};
    std::string path;
  };

  std::vector<Load> loads(std::vector<std::string> arguments, const char* program = SUBJECT_CUDA) {
    subject_ = program;
    if (arguments.size() == 1 && arguments[0] != "absent") arguments.push_back(STANDIN_CUDA);
    run(std::move(arguments));
    std::vector<Load> found;
    for (const RawRecord& record : of_type(GPUWATCH_REC_IMAGE)) {
      Load load;
      load.fixed = model::read_at<gpuwatch_rec_image>(record.payload, 0).value();
      load.head.assign(reinterpret_cast<const char*>(record.payload.data()) + sizeof load.fixed, load.fixed.head_len);
      load.symbol = load.fixed.symbol;
      const std::size_t behind = sizeof load.fixed + ((load.fixed.head_len + 7u) & ~7u);
      load.file = model::read_at<gw_image_file>(record.payload, behind).value();
      load.path.assign(reinterpret_cast<const char*>(record.payload.data()) + behind + sizeof load.file,
                       load.file.path_len);
      if (load.fixed.id != 0) {
        auto bytes = read_image(shards(), load.fixed.id, 1 << 26);
        EXPECT_TRUE(bytes.ok()) << bytes.error().message();
        if (bytes.ok()) load.bytes.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        EXPECT_EQ(load.bytes.size(), load.fixed.copied_bytes);
        EXPECT_EQ(load.head, load.fixed.kind == GPUWATCH_IMAGE_PATH ? load.head : load.bytes.substr(0, 64));
      }
      found.push_back(std::move(load));
    }
    return found;
  }
};

const std::string kPtx = ".version 9.0\n.target sm_90\n";

TEST_F(Images, EveryFormFoundByDlsym) {
  const auto found = loads({"handle"});
  expect_success();
  ASSERT_EQ(found.size(), 5u) << "a loader that calls another counts once";
  EXPECT_EQ(found[0].symbol, "cuModuleLoadData");
  EXPECT_EQ(found[0].fixed.kind, GPUWATCH_IMAGE_TEXT);
  EXPECT_EQ(found[0].bytes, kPtx);
  EXPECT_EQ(found[1].fixed.kind, GPUWATCH_IMAGE_FATBIN);
  EXPECT_EQ(found[1].fixed.flags, GPUWATCH_IMAGEF_WRAPPED);
  EXPECT_EQ(found[1].fixed.bytes, 128u);
  EXPECT_EQ(found[1].bytes.substr(16, 18), "a container's body");
  EXPECT_EQ(found[2].fixed.flags, 0u);
  EXPECT_EQ(found[2].bytes, found[1].bytes);
  EXPECT_EQ(found[3].fixed.kind, GPUWATCH_IMAGE_ELF);
  EXPECT_EQ(found[3].fixed.bytes, 64u + 2 * 64);
  EXPECT_EQ(found[4].symbol, "cuLibraryLoadData");
}

TEST_F(Images, WhereTheImageLay) {
  const auto found = loads({"handle"});
  expect_success();
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[1].path, SUBJECT_CUDA) << "a container in the program's own data";
  EXPECT_NE(found[1].file.ino, 0u);
  EXPECT_EQ(found[3].file.ino, 0u) << "a cubin on the heap lies in no file";
  EXPECT_EQ(found[3].path, "");
}

TEST_F(Images, AddressesOfTheDriversTable) {
  const auto found = loads({"address"});
  expect_success();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].symbol, "cuLibraryLoadData");
  EXPECT_EQ(found[1].bytes, kPtx);
  EXPECT_EQ(found[2].bytes, kPtx);
}

TEST_F(Images, LinkedProgram) {
  const auto found = loads({"linked"}, SUBJECT_CUDA_LINKED);
  expect_success();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].symbol, "cuModuleLoadFatBinary");
}

TEST_F(Images, PathsKeepTheFile) {
  const std::string file = directory() + "/m.cubin";
  std::ofstream(file) << "what the file held";
  const auto found = loads({"path", STANDIN_CUDA, file});
  expect_success();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fixed.kind, GPUWATCH_IMAGE_PATH);
  EXPECT_EQ(found[0].head, file);
  EXPECT_EQ(found[0].bytes, "what the file held");
  EXPECT_EQ(found[1].fixed.id, 0u);
  EXPECT_EQ(found[1].head, "/no/such/file");
}

TEST_F(Images, LinkerInputAndOutput) {
  const auto found = loads({"linker"});
  expect_success();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].bytes, kPtx + '\0');
  EXPECT_EQ(found[0].fixed.flags, GPUWATCH_IMAGEF_SIZED);
  EXPECT_EQ(found[1].symbol, "cuLinkComplete");
  EXPECT_EQ(found[1].bytes, std::string("the linker's output") + '\0');
}

TEST_F(Images, NamesInTheGlobalScope) {
  EXPECT_EQ(loads({"scope"}).size(), 3u);
  expect_success();
}

TEST_F(Images, ProgramWithoutLibcudaFindsNoLoaders) {
  EXPECT_TRUE(loads({"absent"}).empty());
  expect_success();
}

TEST_F(Images, BadPointersCostOnlyTheCopy) {
  const auto found = loads({"bad"});
  expect_success();
  ASSERT_EQ(found.size(), 6u) << "a null image is left to the driver";
  EXPECT_EQ(found[0].fixed.flags, GPUWATCH_IMAGEF_FAULT);
  EXPECT_EQ(found[0].fixed.id, 0u);
  EXPECT_TRUE(found[1].fixed.flags & GPUWATCH_IMAGEF_FAULT) << "text that runs off its memory";
  EXPECT_EQ(found[1].bytes.size(), 4096u);
  EXPECT_TRUE(found[2].fixed.flags & GPUWATCH_IMAGEF_MALFORMED);
  EXPECT_EQ(found[3].fixed.bytes, (1u << 20) + 16);
  EXPECT_EQ(found[3].fixed.copied_bytes, 4096u);
  EXPECT_TRUE(found[3].fixed.flags & GPUWATCH_IMAGEF_FAULT);
  EXPECT_TRUE(found[4].fixed.flags & GPUWATCH_IMAGEF_FAULT);
  EXPECT_TRUE(found[5].fixed.flags & GPUWATCH_IMAGEF_MALFORMED);
}

TEST_F(Images, ARefusedLoadIsRecordedToo) {
  EXPECT_EQ(loads({"failing"}).size(), 1u);
  expect_success();
}

TEST_F(Images, ForkedChildrenHaveTheirOwn) {
  const auto found = loads({"forked"});
  expect_success();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].fixed.id, found[1].fixed.id);
  EXPECT_EQ(recording_.processes, 2u);
}

TEST_F(Images, OverBudgetIsSaidAndBounded) {
  environment_.emplace_back(GW_ENV_IMAGES, "0");
  const auto found = loads({"many"});
  expect_success();
  ASSERT_EQ(found.size(), 100u);
  for (const auto& load : found) {
    EXPECT_EQ(load.fixed.id, 0u);
    EXPECT_TRUE(load.fixed.flags & GPUWATCH_IMAGEF_OVER_BUDGET);
    EXPECT_EQ(load.fixed.bytes, kPtx.size());
  }
}

TEST_F(Images, FilesOfStrangersAreNotRead) {
  loads({"failing"});
  EXPECT_FALSE(read_image(shards(), 77, 100).ok());
  std::filesystem::create_symlink("/etc/passwd", shards() + "/000000000000004d" GW_BLOB_SUFFIX);
  EXPECT_FALSE(read_image(shards(), 77, 1 << 20).ok()) << "links are not followed";
  auto files = image_ids(shards());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->size(), 1u);
  const auto small = read_image(shards(), files->front(), 3);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code(), base::Code::kLimit);
  ASSERT_TRUE(remove_shards(shards()).ok());
  auto left = image_ids(shards());
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(left->empty());
}

}  // namespace
}  // namespace gpuwatch::preload
