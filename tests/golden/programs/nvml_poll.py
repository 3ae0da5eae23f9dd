# SPDX-License-Identifier: Apache-2.0
"""A monitoring agent: asks NVML about every GPU once a second, from one
process. Argument: number of rounds. Needs libnvidia-ml.so.1 alone."""
import ctypes
import sys
import time

from phase import phase

nvml = ctypes.CDLL("libnvidia-ml.so.1")


def must(status):
    if status != 0:
        raise SystemExit(f"NVML gave {status}")


def ask(handle):
    number, count = ctypes.c_uint(), ctypes.c_uint(0)
    memory, rates = (ctypes.c_ulonglong * 3)(), (ctypes.c_uint * 2)()
    must(nvml.nvmlDeviceGetMemoryInfo(handle, memory))
    must(nvml.nvmlDeviceGetUtilizationRates(handle, rates))
    must(nvml.nvmlDeviceGetTemperature(handle, 0, ctypes.byref(number)))
    for clock in range(4):
        nvml.nvmlDeviceGetClockInfo(handle, clock, ctypes.byref(number))
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), None)
    nvml.nvmlDeviceGetPowerUsage(handle, ctypes.byref(number))


def main():
    phase("start")
    must(nvml.nvmlInit_v2())
    count = ctypes.c_uint()
    must(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
    handles = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        must(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)))
        ask(handle)  # the first answers cost more
        handles.append(handle)
    begin, spent = phase("steady"), 0
    for round_number in range(int(sys.argv[1])):
        time.sleep(max(0, begin / 1e9 + round_number - time.monotonic()))
        before = time.monotonic_ns()
        for handle in handles:
            ask(handle)
        spent += time.monotonic_ns() - before
    print(f"per steady {spent / 1e3 / int(sys.argv[1]):.3f}")
    phase("exit")
    must(nvml.nvmlShutdown())


if __name__ == "__main__":
    main()
