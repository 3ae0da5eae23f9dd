// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for tests: two GPUs, the second in MIG mode. The
// environment tells what goes wrong: NVML_FAIL=function[=status] makes that
// function fail, NVML_HANG=function makes it never return.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

struct pci_info {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

static int devices[3];  // GPU 0, GPU 1, the MIG instance of GPU 1

static int fate(const char* function) {
  const char* hang = getenv("NVML_HANG");
  const char* fail = getenv("NVML_FAIL");
  const size_t length = strlen(function);
  if (hang && strcmp(hang, function) == 0)
    for (;;) pause();
  if (!fail || strncmp(fail, function, length) != 0) return SUCCESS;
  if (fail[length] == '=') return atoi(fail + length + 1);
  return fail[length] == '\0' ? UNKNOWN : SUCCESS;
}

#define FATE()                   \
  do {                           \
    int status = fate(__func__); \
    if (status) return status;   \
  } while (0)

static int index_of(void* device) {
  return (int)((int*)device - devices);
}

int nvmlInit_v2(void) {
  FATE();
  return SUCCESS;
}

int nvmlShutdown(void) {
  FATE();
  return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  FATE();
  *count = 2;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  FATE();
  if (index > 1) return INVALID;
  *device = &devices[index];
  return SUCCESS;
}

int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
  FATE();
  *minor = (unsigned)index_of(device);
  return SUCCESS;
}

static int give(char* to, unsigned length, const char* text) {
  if (strlen(text) >= length) return 7;  // insufficient size
  strcpy(to, text);
  return SUCCESS;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  static const char* const uuids[] = {"GPU-00000000-1111-2222-3333-444444444444",
                                      "GPU-55555555-6666-7777-8888-999999999999",
                                      "MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"};
  FATE();
  return give(uuid, length, uuids[index_of(device)]);
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  static const char* const names[] = {"NVIDIA Stand-in 1", "NVIDIA Stand-in 2", "NVIDIA Stand-in 2 MIG 1g.10gb"};
  FATE();
  return give(name, length, names[index_of(device)]);
}

int nvmlDeviceGetPciInfo_v3(void* device, struct pci_info* pci) {
  FATE();
  memset(pci, 0, sizeof *pci);
  pci->bus = 0x40 + (unsigned)index_of(device);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  FATE();
  *count = index_of(device) == 1 ? 7 : 0;
  return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** mig) {
  FATE();
  if (index_of(device) != 1 || index != 0) return NOT_FOUND;
  *mig = &devices[2];
  return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(void* device, unsigned* id) {
  FATE();
  if (index_of(device) != 2) return NOT_SUPPORTED;
  *id = 3;
  return SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(void* device, unsigned* id) {
  FATE();
  if (index_of(device) != 2) return NOT_SUPPORTED;
  *id = 0;
  return SUCCESS;
}

struct utilization {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};

// GPU 0 has more samples than fit at first: process 100 + i had i % 101 percent,
// process 42 first 10 and then 75; one sample is broken.
int nvmlDeviceGetProcessUtilization(void* device, struct utilization* samples, unsigned* count,
                                    unsigned long long last_seen) {
  enum { COUNT = 300 };
  FATE();
  if (index_of(device) != 0) return NOT_SUPPORTED;
  if (last_seen >= 1000 + COUNT) return NOT_FOUND;
  if (*count < COUNT) {
    *count = COUNT;
    return 7;  // insufficient size
  }
  *count = COUNT;
  memset(samples, 0, COUNT * sizeof *samples);
  for (unsigned i = 0; i < COUNT; ++i) {
    samples[i].pid = 100 + i;
    samples[i].time_us = 1000 + COUNT - i;
    samples[i].sm = i % 101;
  }
  samples[1].pid = samples[2].pid = 42;
  samples[1].sm = 75;
  samples[2].sm = 10;
  samples[3].sm = 4000000000u;
  return SUCCESS;
}
