// SPDX-License-Identifier: Apache-2.0
// Members of archives are found however deep, and bombs end with an error.
#include "identify/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <map>

#include "identify/identify.h"
#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

std::string pack(const Files& files, int (*format)(archive*), int (*filter)(archive*)) {
  test::ScratchDir dir;
  const std::string path = dir.file("out");
  archive* handle = ::archive_write_new();
  EXPECT_EQ(format(handle), ARCHIVE_OK);
  EXPECT_EQ(filter(handle), ARCHIVE_OK);
  EXPECT_EQ(::archive_write_open_filename(handle, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, bytes] : files) {
    archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, name.c_str());
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_entry_set_perm(entry, 0644);
    EXPECT_EQ(::archive_write_header(handle, entry), ARCHIVE_OK);
    EXPECT_EQ(::archive_write_data(handle, bytes.data(), bytes.size()), static_cast<la_ssize_t>(bytes.size()));
    ::archive_entry_free(entry);
  }
  EXPECT_EQ(::archive_write_close(handle), ARCHIVE_OK);
  ::archive_write_free(handle);
  return test::slurp(path);
}

std::string ar(const Files& files) {
  return pack(files, ::archive_write_set_format_ar_svr4, ::archive_write_add_filter_none);
}
std::string zip(const Files& files) {
  return pack(files, ::archive_write_set_format_zip, ::archive_write_add_filter_none);
}
std::string tar(const Files& files) {
  return pack(files, ::archive_write_set_format_pax_restricted, ::archive_write_add_filter_none);
}
std::string tar_gz(const Files& files) {
  return pack(files, ::archive_write_set_format_pax_restricted, ::archive_write_add_filter_gzip);
}
std::string gz(const std::string& bytes) {
  return pack({{"data", bytes}}, ::archive_write_set_format_raw, ::archive_write_add_filter_gzip);
}

struct Result {
  std::map<std::string, std::vector<std::string>> r;  // of each image, by file
  std::vector<std::string> errors;
};

Result look(const std::string& bytes, const Limits& limits = {}) {
  Options options;
  options.workers = 1;
  options.limits = limits;
  Identifier identifier(options);
  Collector found;
  EXPECT_TRUE(identifier.bytes("a", as_bytes(bytes), found).ok());
  Result result;
  for (const auto& part : found.report.parts) {
    if (!part.error.empty()) result.errors.push_back(part.file + ": " + part.error);
    if (part.entry) result.r[part.file].push_back(to_hex(part.entry->module.r));
  }
  return result;
}

std::string r_of(const std::string& cubin) {
  return to_hex(sha256(as_bytes(cubin)));
}

TEST(Archive, EachKind) {
  const std::string cubin = test::sample("chg_base_80.cubin");
  const std::string text = "nothing of interest in this one";
  const Files files = {{"odd.o", "x" + text}, {"k.cubin", cubin}};
  for (const auto& make : {ar, zip, tar, tar_gz}) {
    const Result result = look(make(files));
    EXPECT_EQ(result.errors, std::vector<std::string>{});
    ASSERT_EQ(result.r.size(), 1u);
    EXPECT_EQ(result.r.begin()->first, "a!k.cubin");
    EXPECT_EQ(result.r.begin()->second, std::vector<std::string>{r_of(cubin)});
  }
  const Result single = look(gz(cubin));
  ASSERT_EQ(single.r.size(), 1u);
  EXPECT_EQ(single.r.begin()->second, std::vector<std::string>{r_of(cubin)});
}

// An image tarball: layers that are compressed tars, with a wheel in one.
TEST(Archive, WithinEachOther) {
  const std::string cubin = test::sample("chg_base_80.cubin");
  const std::string layer = tar_gz({{"usr/lib/k.so", test::sample("a_def.o")}, {"w.whl", zip({{"t/k.cubin", cubin}})}});
  const Result result = look(tar({{"oci-layout", "{\"imageLayoutVersion\":\"1\"}"}, {"blobs/sha256/00", layer}}));
  EXPECT_EQ(result.errors, std::vector<std::string>{});
  ASSERT_EQ(result.r.count("a!blobs/sha256/00!w.whl!t/k.cubin"), 1u);
  EXPECT_EQ(result.r.at("a!blobs/sha256/00!w.whl!t/k.cubin"), std::vector<std::string>{r_of(cubin)});
  EXPECT_EQ(result.r.at("a!blobs/sha256/00!usr/lib/k.so").size(), 3u);
}

TEST(Archive, DepthIsBounded) {
  std::string bytes = test::sample("chg_base_80.cubin");
  for (int i = 0; i < 10; ++i) bytes = zip({{"in", bytes}});
  const Result result = look(bytes);
  EXPECT_TRUE(result.r.empty());
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_NE(result.errors[0].find("within each other"), std::string::npos);
}

// The reader itself, in this process: limits that are small enough to be hit.
TEST(Archive, BombsAreEnded) {
  const std::string zeros(200 << 20, '\0');
  const std::string bomb = gz(zeros);
  ASSERT_LT(bomb.size(), zeros.size() / 500);
  test::ScratchDir dir;
  test::spill(dir.file("bomb"), bomb);
  const base::Fd fd(::open(dir.file("bomb").c_str(), O_RDONLY | O_CLOEXEC));
  const auto next = [&](const Limits& limits) {
    test::spill(dir.file("spool"), "");
    const base::Fd spool(::open(dir.file("spool").c_str(), O_RDWR | O_CLOEXEC));
    auto reader = ArchiveReader::open(fd.get(), bomb.size(), limits);
    EXPECT_TRUE(reader.ok());
    auto member = reader->next(spool.get());
    return !member.ok() ? member.error().message() : member->size == zeros.size() ? "ok" : "short, " + member->error;
  };
  EXPECT_EQ(next({}), "ok");
  Limits limits;
  limits.archive_ratio = 100;
  EXPECT_NE(next(limits).find("expands more than 100 times"), std::string::npos);
  limits = {};
  limits.archive_member_bytes = 1 << 20;
  EXPECT_NE(next(limits).find("member too large"), std::string::npos);
  limits = {};
  limits.archive_total_bytes = 1 << 20;
  EXPECT_NE(next(limits).find("too large in total"), std::string::npos);
  limits = {};
  limits.archive_members = 0;
  EXPECT_NE(next(limits).find("members"), std::string::npos);
}

TEST(Archive, DamageIsReportedAndSurvived) {
  const std::string cubin = test::sample("chg_base_80.cubin");
  for (const auto& make : {ar, zip, tar, tar_gz}) {
    const std::string whole = make({{"one", cubin}, {"two", cubin}});
    for (std::size_t size : {whole.size() / 3, whole.size() / 2, whole.size() - 7}) (void)look(whole.substr(0, size));
    std::string bent = whole;
    for (std::size_t at = 40; at < bent.size(); at += 211) bent[at] = static_cast<char>(bent[at] ^ 0x55);
    (void)look(bent);
  }
}

}  // namespace
}  // namespace gpuwatch::identify
